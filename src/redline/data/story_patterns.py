"""The phrases and sentences any story may use, kept as tables so that a writer can add to them.

A rule's name stands at the margin, its patterns below, one a line. `story_grammar.py` reads:
    (a|b)      one of the alternatives          [a|b]   the same, or nothing half of the time
    <rule>     any pattern of that rule         <word.past> <word.ing> <noun.s>   inflected words
    {verb}     a verb in the form asked of the rule, and <rule*> a rule in that form
    <cast>     a fact settled for the whole story (a name in CAST), so that it can return much later
    <rule:friend>  the rule told of the friend: <who> <he> <him> <his> <other> follow that role
    ^          a capital follows                //      a new paragraph
Changing anything here changes the corpus: bump `stories.VERSION`.
"""

CAST = {
    "toy": "<treasure>",
    "toycolor": "<color>",
    "toysize": "<size>",
    "gift": "<treasure>",
    "giftadj": "<adj>",
    "relic": "<thing>",
    "relicadj": "<adj>",
    "prize": "<adj> <color> <thing>",
    "swap1": "<adj> <thing>",
    "swap2": "<color> <thing>",
    "seller": "<villager>",
    "culprit": "<color> <critter>",
    "home": "<town>",
    "far": "<place>",
    "faradj": "<placeadj>",
    "sign": "<landmark>",
    "spot": "(under|behind|inside|beside|beneath|next to) a [<adj> ]<thing>",
    "food": "<dish>",
    "beast": "<helper>",
    "beastadj": "<trait>",
    "weak": "<patient>",
    "many": "<number>",
    "bits": "<small.s>",
    "talent": "<skill>",
    "dread": "<fear.s>",
    "worker": "<job>",
    "wreck": "<building>",
}

PHRASES = """
subject:
    <who>
    <who>
    <who>
    <he>
object:
    a <adj> <thing>
    a <adj>, <adj> <thing>
    a <size> <color> <thing>
    a <color> <thing>
    a <size> <thing>[ <trim>]
    a <thing> <trim>
    a <fabric> <thing>[ <trim>]
    a <adj> <fabric> <thing>
    an old <thing> <trim>
    a <thing> and a <thing>
    <number> <adj> <thing.s>
    <number> <thing.s>
    <villager>'s [<adj> ]<thing>
    a [<adj> ]basket of <small.s>
    a [<adj> ]<thing> with a <adj> <part>
trim:
    made of <stuff>
    made (entirely|mostly|partly) of <stuff> and <stuff>
    full of (<small.s>|<color> <stuff>|<thing.s>)
    that smelled (of|like) <smell>[ and <smell>]
    with a <color> <part>
    with <number> <color> <part.s>
    that had once belonged to <villager>
    that nobody wanted
    from <town>
    covered in <stuff>
    that looked like a <critter>
    as <size> as a <thing>
being:
    <loner>
    <loner>
    <number> [<trait> ]<critter.s>
    a (family|crowd) of <critter.s>
loner:
    a <trait> <critter>
    a [<size> ]<color> <critter>
    a <critter> (carrying|with|pulling|wearing) <object>
    a <trait> <job>
    <villager>
villager:
    the <job>
    the <trait> <job>
    (Mr.|Mrs.|Miss|Old|Captain|Doctor) <surname>
    the <job>'s (son|daughter|cousin|sister|brother|uncle|dog|cat)
path:
    (across|through|past|around|toward|along) the [<placeadj> ]<place>
    (past|around|behind|toward|beyond|by) the [<landadj> ]<landmark>
    (across|through|past) the <place> and (past|around|toward|behind) the <landmark>
    from the <landmark> to the <place>
    (up|down|along) the (hill|road|path|lane|street|track)[ to the <landmark>]
where:
    (near|by|beside|behind|next to) the [<landadj> ]<landmark>
    (at the edge of|in the middle of|on the far side of) the [<placeadj> ]<place>
    in the <room>
    (in the shadow of|not far from|opposite|within sight of|a few steps from) the <landmark>
    between the <landmark> and the <place>
when:
    one <dayadj> <season> <daypart>
    one <dayadj> <daypart>[ in <season>]
    on a <dayadj> <weekday>
    on (market|washing|baking|cleaning) day
    <number> days (before|after) the (fair|feast|first snow|harvest|great storm|parade)
    one <weekday> (morning|afternoon|evening)
    late one <season> (afternoon|evening|night)
    early in <season>, when the <place> was <placeadj>
later:
    after a while
    a little later
    before long
    by <nightfall>
    (two|three|four|five|ten|twenty) minutes later
    soon
    just then
    at last
    all of a sudden
    the very next (day|morning|evening|week)
    when the (clock|bell|kettle|<job>) (struck|called|rang|stopped)
    by the time the (sun|moon) (rose|set)
    after <deed.ing>
nightfall:
    (noon|dawn|dusk|midnight|sunset|nightfall|evening|supper time|bedtime|teatime)
manner:
    <adverb>
    <adverb>
    <adverb>
    <adverb>
    <bearing>
simile:
    like a <critter> in the <place>
    like a <adj> <thing>
    like <number> <critter.s> in a (basket|barn|teacup|storm|puddle|hurry|sack|snowdrift)
    like <villager>'s [<adj> ]<thing>
    as <adverb> as a [<trait> ]<critter>
deed:
    <build*> a [<adj> ]<thing> out of <stuff>
    <build*> <object>
    {draw} (a|pictures of a) <adj> <thing>
    {paint} <object>
    <gather*> [<color> |<adj> |<size> ]<small.s>[ <where>]
    <gather*> <number> [<adj> ]<small.s>
    <chase*> the [<trait> |<color> ]<critter.s>[ <where>]
    <go*> <path>
    <go*> <path>[ <manner>]
    <handle*> the <adj> <thing>
    <handle*> <object>
    <handle*> <object>
    <greet*> <being>
    <greet*> (<being>|<villager>) <where>
    <see*> <object>
    <cook*> (a <dish>|<number> <dish.s>|<dish.s>)
    {play} <game> with (<villager>|the <critter.s>)
    {help} <villager> <chore>
    {tell} <villager> about (<being>|<object>)
    {sing} a <adj> song about <being>
    {read} a [<adj> ]book about (<critter.s>|<job.s>|<thing.s>)
    {dig} for <small.s> <where>
    <rest*> <where>
    {listen} to the <critter.s> <where>
    {visit} (<villager>|the <placeadj> <place>)
    {ask} <villager> for <object>
chore:
    (wash|sweep|tidy|paint|clean) the <room>
    (wash|dry|count|mend|carry|polish|sort|stack|label|move) (the|some) [<adj> ]<thing.s>
    feed the <critter.s>
    (find|repair|carry|paint|lift|wrap) <object>
    (pick|water|sort|sell|gather) <small.s>
    (bake|sell|deliver) <dish.s>
    look for <object>
tag:
    <speak.past> <who>
    <speak.past> <who>[ <manner>]
    <who> <speak.past>[ <manner>]
    <speak.past> <who>, <deed.ing>
    said <who> as <he> <deed.past>
asked:
    <ask.past> <who>[ <manner>]
    <who> <ask.past>[ <manner>]
    <ask.past> <who>, <deed.ing>
lived:
    lived (<where>|in <home>|in a <size> <color> house <where>|above the <worker>'s shop)
    lived with <elder> <where>
    lived in <home> with (a <trait> <critter>|<number> <trait> <critter.s>)
    lived (across the street from|upstairs from|next door to) <villager>
body:
    <his> (heart|stomach|head|belly) (thumped|fluttered|sank|turned over|jumped) <simile>
    <his> (knees|hands|lips|shoulders|legs) (shook|trembled|went cold|felt heavy)[ <simile>]
    <he> could not (sleep|eat|smile|speak|sit still|think of anything else)
"""

SENTENCES = """
companion:
    ^<his> best friend was <friend>, a <trait> <friend.kind> with a <giftadj> <gift>.
    ^<hero> had a friend called <friend>, a <trait> <friend.kind> who owned a <giftadj> <gift>.
    Next door lived <friend>, a <trait> <friend.kind>, who took a <giftadj> <gift> everywhere.
    ^<hero> was <trait>, but <his> friend <friend> was <trait>. ^<friend> was a <friend.kind> and \
        had a <giftadj> <gift>.
    ^<friend>, a <friend.kind> with a <giftadj> <gift>, often came to <deed> with <hero>.
    There was also <friend>, a <trait>[, <trait>] <friend.kind>, and <friend.his> <giftadj> <gift>.
guardian:
    ^<elder> looked after <hero> and taught <him> to <skill>.
    ^<elder>, who <deed.past> every <weekday>, was very fond of <hero>.
    ^<hero>'s favorite person was <elder>, who was <trait> and smelled of <smell>.
    When <hero> was <sad>, <he> went to <elder>, who was <trait> and <trait>.
    ^<elder> lived <where> and often asked <hero> to <chore>.
open:
    ^(once|long ago|many years ago|once upon a time), a <trait> <kind> named <hero> <lived>.
    There was once a <trait>, <trait> <kind> called <hero> who <lived>.
    In <home>, <where>, lived a <trait> <kind> named <hero>.
    ^<hero> was a [very |rather ]<trait> <kind> who <lived>.
    Everyone in <home> knew <hero>, the <kind> who <deed.past> every <weekday>.
    ^<hero>, a <trait> <kind>, <lived>, and nobody in <home> was more <trait>.
    ^<when>, a <trait> <kind> named <hero> <deed.past>.
    Have you heard of <hero>, the <trait> <kind> from <home>?
    If you had gone to <home> that <season>, you would have met a <trait> <kind> named <hero>.
    ^<villager> used to tell this story about a <trait> <kind> named <hero>, who <lived>.
    ^(nobody|no <kind>) in <home> was as <trait> as <hero>, a <kind> who <lived>.
habit:
    ^<subject> (liked|loved|used) to <deed>, and sometimes <he> <deed.past>.
    Most of all <subject> loved <deed.ing>.
    ^<subject> was <trait> but (never|not at all|seldom) <trait>.
    Every <weekday> <subject> <deed.past>, unless it was too <dayadj>.
    ^<who> could <skill>, but <he> could not <skill>.
    People said that <subject> was too <trait> to <skill>, which was not true.
    ^<subject> had <number> <thing.s>, <object>, and <object>.
    When <subject> was not <deed.ing>, <he> was <deed.ing>.
    ^<his> favorite things were <dish.s>, <game>, and <thing.s> made of <stuff>.
    ^<subject> was never <sad> for long, because <he> could always <deed>.
    In <season> <subject> <deed.past>, and in <season> <he> <deed.past>.
keepsake:
    ^<hero> owned a <toysize> <toycolor> <toy>, and <he> took it everywhere.
    ^<elder> had given <hero> a <toysize> <toycolor> <toy> (for <his> birthday|one <season>|long \
        ago).
    Of all <his> things, <hero> loved <his> <toysize> <toycolor> <toy> the most.
    People said that <hero>'s <toysize> <toycolor> <toy> was too \
        (old|plain|small|loud|shabby|worn|odd|ugly|fancy|heavy), but to <hero> it was \
        (perfect|beautiful|splendid|wonderful).
    ^<hero> never left home without <his> <toy>, which was <toysize> and <toycolor>.
    The best thing <hero> had was a <toysize> <toycolor> <toy> <trim>.
weather:
    It was a <dayadj>[, <dayadj>] <daypart>, and the <place> was <placeadj>.
    The (wind|rain|snow|sun|fog|moon) (came|crept|drifted|reached) (over|into|across) the <place> \
        <simile>.
    Outside, the (wind|rain|thunder|sea) <sound.past> <simile>.
    The (sky|air|light|ground) was <color> and <dayadj>, and (somewhere|far away) a <critter> \
        <sound.past>.
    A (cold|warm|soft|salty|fierce|sudden|wet|sharp|lazy) wind <sound.past> (through|around|over) \
        the <landmark>.
    The (clouds|stars|hills) looked like <color> <thing.s>.
    The <place> smelled of <smell> and <smell>.
    All <daypart> the <critter.s> <sound.past> <where>.
    It had (rained|snowed|been <dayadj>) for <number> days, and the <place> was still <placeadj>.
journey:
    ^<subject> <go.past> <path>, <go.past> <path>, and <go.past> <path>.
    ^<later>, <subject> <go.past> <path>[, where <he> <greet.past> <being>].
    ^<go.ing> <path>, <subject> <see.past> <object>.
    On the way <subject> <see.past> <object>, <being>, and <object>.
    Although <he> was <sad>, <subject> <go.past> <path>.
    ^<subject> <go.past> until <he> (came to|reached|saw) the [<landadj> ]<landmark>.
    First <subject> <go.past> <path>; then <he> <go.past> <path>.
    Past the <landmark>, <subject> <greet.past> <being>.
    There was <object> <where>, and beside it <subject> <see.past> <object>.
sight:
    ^<subject> <see.past> <object> <where>.
    ^<where>, <being> <deed.past>.
    ^<loner> was <deed.ing> <where>, but <subject> hardly noticed.
    ^<villager> <deed.past> while <villager> <deed.past>.
    Meanwhile, <villager> <deed.past>.
    ^<later>, <being> <go.past> <path>.
    Something <sound.past> <where>, but it was only <being>.
    There were <thing.s>, <thing.s>, and even <object>.
    A <adj> <thing> (lay|stood|hung|leaned) <where>, and <being> <rest.past> (beside|behind|near) \
        it.
    Nobody saw <being>, who <deed.past>.
act:
    ^<subject> <deed.past>, and then <he> <deed.past>.
    ^<later>, <subject> <deed.past>.
    ^<later>, <subject> <deed.past> and <deed.past>.
    Because <he> felt <sad>, <subject> <deed.past>.
    ^<subject> <deed.past> so <adverb> that <villager> <deed.past>.
    Instead of <deed.ing>, <subject> <deed.past>.
    ^<subject> <deed.past> <simile>.
    ^<manner>, <subject> <deed.past>.
    While <villager> <deed.past>, <subject> <deed.past>.
    ^<subject> wanted to <deed>, but first <he> had to <chore>.
    Before <deed.ing>, <subject> <deed.past>.
feel:
    ^<who> felt [very |quite |a little |terribly ](<sad>|<sad> and <sad>).
    ^<who> felt <sad>, and <body>.
    ^<who> felt so <sad> that <he> <deed.past>.
    A tear (rolled|ran|slid) down <who>'s (cheek|nose|chin), and <body>.
    ^<who> had never been so <sad> in all <his> life.
    "Oh, <thing.s> and <dish.s>!" (cried|gasped|muttered|groaned|sighed|wailed|grumbled) <who>.
    ^<who> was <sad>, then <sad>, then <sad>.
    ^<who> did not know whether to <deed> or to <deed>.
    "I feel as <sad> as a <adj> <thing>," <tag>.
chat:
    "Did you know that <villager> can <skill>?" <asked>.
    "Yesterday I <deed.past>," <tag>. "Tomorrow I will <deed>."
    "When I am grown up, I will be a <job> and <deed>," <tag>.
    "I would rather <deed> than <deed>," <tag>.
    "Could that be <object>?" <asked>. "No," <tag:other>, "I see only <object>."
    "You look <sad>, <other>," <tag>. "Would you like a <dish>?"
    "My <kin> says that <critter.s> never <deed>," <tag>.
    "If I had <object>, I could <deed>," <tag>.
    "What would you do with <object>?" <asked>. "I would <deed>," <tag:other>.
    "Listen! Something <sound.past> <where>," <tag>.
    "Listen to this: ^<when>, I saw <being> <where>!" <tag>.
comfort:
    "Do not be <sad>, <other>," <tag>. "We can <deed> together."
    "Even <villager> feels <sad> now and then," <tag>.
    "Eat this <food>, <other>, and you will feel <glad>," <tag>.
    "I was <sad> too when I <deed.past>," <tag>. "Then I <deed.past>."
    "^<virtue> is worth more than <object>," <tag>.
    ^<who> sat down beside <other> and gave <other.him> <object>.
    "We need (<virtue>|a plan|a <thing> and a <thing>)," <tag>, \
        "and we need it (soon|now|before <nightfall>|by <weekday>)."
plan:
    ^<who> had an idea. "We can use <object> as a <thing>!" <tag>.
    "First we <deed>, then we <deed>, and last of all we <deed>," <tag>.
    ^<who> thought about it while <deed.ing>. Then <he> (knew what to do|had a plan|saw the \
        answer|whispered something to <other>).
    "What if we tie <object> to <object>?" <asked>.
    "I know!" <tag>. "We must ask <villager>, who has <object>."
    ^<who> took <object>, <object>, and <object>, and <he> went to work.
feast:
    They (ate|shared|cooked) <number> <dish.s> and talked about <being>.
    For supper there were <dish.s>, <dish.s>, and <object> to put the crumbs in.
    ^<elder> brought out <dish.s> and <object>, and <villager> <deed.past>.
    That <daypart> they <deed.past>, and <friend> <deed.past>.
    ^<friend> played <game> with <villager>, while <hero> <deed.past>.
    Then <villager> told a story about <being>, and everyone felt <glad>.
moral:
    ^<hero> had learned that <lesson>.
    "Remember," said <elder>, "<lesson>."
    And from that day on, <hero> knew that <lesson>.
    After that, whenever <hero> saw <object>, <he> remembered that <lesson>.
    ^<lesson>, and nobody in <home> knew it better than <hero>.
    ^<friend> always said that <lesson>, and <hero> agreed.
lesson:
    <virtue> is better than <object>
    a <praise> friend is worth <number> <adj> <thing.s>
    it is (better|wiser|kinder) to <deed> than to <deed>
    even a <fault> <kind> can be <praise>
    those who are <praise> should also be <praise>
    no <thing> is too <adj> to be mended
    <virtue> and <virtue> (go together|grow slowly|cost nothing)
    there is no <virtue> without <virtue>
    a little <virtue> can (open any door|light the darkest <place>|warm the coldest <room>|mend \
        <object>)
    with a little <virtue>, a <job> can become a friend
end:
    That night <hero> put the <toycolor> <toy> beside <his> bed and dreamed of <being>.
    And the <toysize> <toycolor> <toy>? It is still <where>, not far from <home>.
    ^<hero> and <friend> went home <path>, and <hero> felt <glad> all the way.
    From then on, <hero> and <friend> <deed.past> every <weekday>.
    ^<hero> fell asleep holding the <toy>, while outside the <critter.s> <sound.past>.
    ^<hero> never forgot <friend>, or that <dayadj> <daypart> in <home>.
    ^<friend> kept <friend.his> <giftadj> <gift>, <hero> kept the <toycolor> <toy>, and both were \
        <glad>.
    "Good night, <toy>," whispered <hero>. "Tomorrow we will <deed>."
    To this day, people in <home> tell how <hero> <deed.past>.
    And if you visit <home>, you may still see <hero> <deed.ing>.
    "What a <dayadj> day," said <hero>, and <friend> laughed (merrily|softly|out loud|too|until \
        <friend.he> hiccuped).
"""
