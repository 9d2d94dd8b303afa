"""The plots of the built-in stories: what goes wrong, and how it comes right.

A table apart from the sentences every plot may use (`story_patterns.py`, which explains the
notation), because a plot's parts must agree with one another and so are read together.
"""

PLOTS = """
story:
    <intro>//<loss> <feel> [<comfort:friend>]//<search> <filler> \
        [<search>]//<clue>//<found>//<beastend>
    <intro>//<quarrel> <feel>//<aside> [<advice>]//<peace>//<close>
    <intro>//<snap> <feel>//<aside> [<advice>]//<repair>//<close>
    <intro>//<dreading> [<habit>]//<filler> <peril> <feel>//<bravery> <rescued>//<close>
    <intro>//<injured> <feel> <nursing>//<aside> <healed>//[<filler>] <repaid>//<close>
    <intro> <guardian>//<giving> <plan>//<toil> <filler> [<toil>]//[<chat>] <given>//<close>
    <intro> <guardian>//<warning> <disobey>//[<weather>] <astray> <feel>//<guided>//<close>
    <intro>//<contest> <practice>//<filler> <race>//<mercy>//<close>
    <intro> <guardian>//<damage> <feel>//<lie> <aside>//<confession>//<close>
    <alone>//<newcomer> [<chat>]//<shyness> <filler>//<welcome>//<close>
    <intro>//<noise> <feel> [<chat:friend>]//<tracking> <filler>//<revealed>//<beastend>
    <intro>//<envy> <trades>//<aside>//<regret>//<returned>//<close>
    <intro>//<disaster> <feel>//<plan:friend> [<filler>] <teamwork>//<restored>//<close>
    <intro> <guardian>//<greed> [<chat:friend>]//<ache> <comfort:elder>//<sharing>//<close>
    <intro> <guardian>//<yearning> [<feel>]//<teaching> <tries>//<filler> <mastery>//<close>
    <alone>//<errand> <journey>//<journey> <filler> [<feel>]//<arrival>//<close>
intro:
    <alone> <companion>
    <open> <companion> <keepsake>
    <open> <keepsake>//<companion> [<chat>]
    <open> [<habit>] <keepsake> <companion> [<habit:friend>]
alone:
    <open> [<habit>] [<weather>] <keepsake>
    <open> <keepsake> [<habit>]
    <weather> <open> <keepsake>
    <open> <habit> [<habit>] <keepsake>
filler:
    <sight>
    <act>
    <act> <sight>
    <act:friend>
    <act> <act:friend>
    <chat>
    <chat:friend> [<sight>]
    <journey>
    <weather> <act>
    <sight> <act>
aside:
    <filler>
    <filler> <filler>
    <act> <feel>
close:
    <end>
    <moral> <end>
    <feast> <end>
    <feast> <moral>
    <end> <moral>
beastend:
    <close>
    <feast> The <beastadj> <beast> ate <number> <food.s> and fell asleep <where>.
    <moral> As for the <beast>, it still lives in the <far> and is as <beastadj> as ever.
    ^<hero> never forgot <friend>, the <toycolor> <toy>, or the <beastadj> <beast>.
    ^<hero> was <glad>, <friend> was <glad>, and even the <beast> was a little less <beastadj>.
loss:
    But <when>, while <hero> was <deed.ing>, the <toycolor> <toy> disappeared.
    ^<when>, <hero> <deed.past>, and when <he> turned around, the <toy> was gone.
    ^<when>, <hero> looked for <his> <toy>, but there was only <object> where it had been.
    "Where is my <toy>?" cried <hero>. "It was <where> when I <deed.past>!"
    Then, <when>, <being> <deed.past>, and in all the noise <hero> lost the <toycolor> <toy>.
search:
    ^<hero> looked <hiding>, <hiding>, and <hiding>, but <he> found only <object>.
    ^<hero> searched the <place> while <friend> searched the <room>.
    "Have you seen a <toysize> <toycolor> <toy>?" <hero> asked <villager>. "No, but I have seen \
        <object>," was the answer.
    They asked <villager>, <villager>, and <being>, but nobody had seen the <toycolor> <toy>.
    ^<friend> found <object> <hiding>, but it was not the <toy>.
    They <go.past> <path> and looked <hiding>.
hiding:
    (under|behind|inside|beside) the [<adj> ]<thing>
    (under|behind|near) the <landmark>
    in every corner of the <place>
    among the <small.s>
clue:
    ^<where>, they met a <beastadj> <beast>. "I saw your <toy> <spot>," it said, "in the <far>." \
        <fee>
    A <beastadj> <beast> was <deed.ing> by the <sign>. "Look in the <far>," it told <hero>. <fee>
    "I know where your <toycolor> <toy> is," said a <beastadj> <beast> <where>. <fee>
    A <beastadj> <beast> <sound.past>. "I saw something <toycolor> in the <far>," it said. <fee>
fee:
    "Bring me <many> <bits>, and I will show you." So <hero> (found|gathered|collected|brought) \
        <many> <bits> for the <beast>.
    ^<friend> gave the <beast> a <food>, and it ate every crumb <manner>.
    "Follow me," it added, and they all <go.past> <path>.
    ^<hero> thanked the <beast> and promised to bring it a <food>.
found:
    There, <spot>, was the <toysize> <toycolor> <toy>! "We found it, <friend>!" cried <hero>.
    They looked <spot>, and there it was: the <toysize> <toycolor> <toy>, only a little <adj>.
    In the <faradj> <far>, <spot>, <hero> saw something <toycolor>. It was the <toy>!
    ^<villager> had put the <toycolor> <toy> <spot> and forgotten it. ^<hero> felt <glad>.
    The <beast> looked <spot> and pulled out the <toy>. "Thank you," said <hero>. "Here is a \
        <food>."
quarrel:
    ^<when>, <friend> asked to hold the <toy>. "No," said <hero>, "you are too <fault>."
    ^<when>, <hero> took the <giftadj> <gift> without asking, and <friend> <speak.past>, "You \
        <fault> <kind>!"
    "Your <toy> is <adj>," said <friend> <when>. "Your <gift> is <adj>," <speak.past> <hero>.
    ^<when>, <hero> and <friend> could not agree whether to <deed> or to <deed>. "Go away!" said \
        <friend>.
advice:
    "Why are you <sad>?" asked <elder>. ^<hero> told <elder.him> about <friend> and the <toy>.
    "When I was young, I lost a friend over <object>," said <elder>. "Do not do the same."
    ^<elder> gave <hero> <number> <food.s>. "Half of them are for <friend>," said <elder>, and \
        smiled.
peace:
    The next day <hero> <go.past> <path> to find <friend>. "I am sorry," <he> said. "You may have \
        the <toy> every <weekday>."
    ^<friend> came <path> with a <food>. "I was <sad>," <friend.he> said. "So was I," said <hero>.
    ^<hero> gave <friend> <object>, and <friend> lent <hero> <friend.his> <giftadj> <gift>.
    ^<hero> and <friend> said sorry at the same moment, and then they both laughed.
snap:
    ^<when>, both of them wanted the <toycolor> <toy>. ^<hero> pulled, <friend> pulled, and it \
        broke.
    ^<when>, <friend> dropped the <toycolor> <toy> <where>. "You always <deed>!" shouted <hero>.
    ^<when>, <friend> borrowed the <toy> to show it to <villager>, and its <part> came off.
repair:
    Together they mended the <toycolor> <toy> with <stuff> and <stuff>, and it was as good as new.
    ^<friend> brought <object> and a pot of glue. By <nightfall> the <toy> was whole, except for a \
        <color> <part>. "I like it better now," said <hero>.
    "I am sorry about your <toy>," said <friend>. "You may have my <gift>." But <hero> shook <his> \
        head, and they went to the <worker>, who mended the <toy> for <number> coins.
dreading:
    ^<hero> was afraid of only one thing: <dread>.
    More than anything, <hero> feared <dread>. Once <he> <deed.past> for <number> days to avoid \
        them.
    "There are no <dread> here," <elder> always said, but <hero> was still <sad>.
    Because of the <dread>, <hero> never <deed.past>, even when <villager> asked <him>.
peril:
    ^<when>, a <weak> was trapped <spot>, and there were <dread> all around it.
    "Help!" cried somebody in the <faradj> <far>. It was <friend>, and <friend.he> was surrounded \
        by <dread>.
    ^<when>, <friend> got stuck <where>, and between them there were <dread>.
    ^<when>, the <toycolor> <toy> rolled into the <far>, right beside the <dread>.
    ^<elder> was ill, and someone had to <go> past the <dread> to fetch <villager>.
bravery:
    ^<hero> shut <his> eyes, held <his> breath, and counted to <many>. Then <he> <go.past> <path>.
    "I am <praise>, and I am not afraid of <dread>," said <hero>. ^<later>, it was true.
    ^<hero> thought of <elder>, who was never <sad>, and <he> <go.past> past the <dread> <simile>.
    Up close, the <dread> were only <size> and <adj>. ^<hero> took <object> and went on.
    With <object> to protect <him>, <hero> <go.past> straight past the <dread>.
rescued:
    ^<later>, (everything was all right again|the danger was over|they were all safe \
        <where>|nobody needed to be <sad> any more). "How <praise> you are!" said <friend>, and \
        gave <him> a <food>.
    "Were you not afraid?" asked <elder>. "Only <number> times," said <hero>.
    After that the <dread> in the <far> never seemed so <size> again.
injured:
    ^<when>, <hero> found a <weak> <spot>. Its (leg|foot|back) was hurt, and it <sound.past> \
        <manner>.
    ^<when>, a <color> <weak> lay <where>. It was <sad> and could not <go>.
    ^<go.ing> <path>, <hero> heard a <weak> crying. It was caught in <object>.
    "Look, a <weak>!" called <friend>, who was <deed.ing>. "It is hurt, and it looks <sad>."
nursing:
    ^<hero> carried the <weak> home in a <adj> <thing> and fed it (<small.s>|warm milk|crumbs of \
        bread).
    ^<elder> found <object> for a bed, and <hero> covered the <weak> with <stuff>.
    "It needs <number> <small.s> and a warm <room>," said <elder>.
    For <number> days the <weak> slept <hiding>, next to the <toycolor> <toy>.
healed:
    When <season> came, the <weak> was well, and <hero> let it go <where>. ^<he> felt <sad> and \
        <glad>.
    "Goodbye, little <weak>," said <hero> <manner>. It <go.past> <path> and was gone.
    One <weekday> the <weak> was well. ^<hero> opened the window, and it <sound.past> once and left.
repaid:
    Much later, <hero> was lost in the <faradj> <far>, until the <weak> came and led <him> <path>.
    That <season> <hero> dropped the <toycolor> <toy> <hiding>, and who brought it back? The <weak>!
    ^<number> weeks later, <hero> heard a tap at the window. It was the <weak>, with <number> \
        <small.s>.
    The <weak> came back with <number> little ones, and <hero> showed them to <friend>.
giving:
    It would soon be <elder>'s birthday, and <hero> wanted to give <elder.him> a <prize>. But <he> \
        had only <many> <bits>.
    "What does <elder> need?" <hero> asked <friend>. "A <prize>, of course," said <friend>.
    ^<elder> was <sad> that <season>, so <hero> and <friend> decided to find <elder.him> a <prize>.
    ^<hero> saw a <prize> in <villager>'s window. It was just right for <elder>, but it cost \
        <many> coins.
toil:
    ^<hero> (found|gathered|collected|picked up) <many> <bits>, and <friend> sold them to the \
        <worker>.
    For <number> days <hero> helped <villager> <chore>, and <friend> helped <villager> <chore>.
    ^<hero> sewed, <friend> glued, and <villager> lent them <object>.
    The first one they made was too <adj>, the second was too <adj>, and the third fell apart.
    ^<hero> sold <dish.s> to <villager> and swept the <room> for the <worker>.
given:
    ^<elder> opened the parcel <manner>. Inside was a <prize>! "How <adj>!" <elder.he> said.
    "A <prize>!" cried <elder>. "Did you make it?" "^<friend> helped me," said <hero>, who felt \
        <glad>.
    ^<elder> laughed and cried and put the <prize> <where>, where everyone could see it.
    ^<elder> said it was better than <object>, and gave each of them a <food>.
warning:
    "Never <go> past the <sign>," <elder> told <hero>. "The <far> is <faradj>, and you are <fault>."
    ^<elder> had one rule: nobody may go past the <sign> to the <faradj> <far>.
    "Be home before <nightfall>," said <elder>, "and do not <go> in the <far>."
disobey:
    But <when>, <being> <go.past> past the <sign>, and <hero> followed.
    ^<hero> nodded, but <he> was <fault>, and <when> <he> <go.past> past the <sign>.
    "Just once," said <hero>, and <he> took the <toycolor> <toy> and <go.past> into the <far>.
astray:
    ^<later>, every path in the <far> looked the same, and <hero> could not find the <sign>.
    It grew dark and (cold|foggy|windy|wet|chilly|stormy|misty|icy). In the <far> something \
        <sound.past>, and something else <sound.past>.
    ^<hero> slipped, and <he> and the <toy> rolled into a ditch full of <stuff>.
guided:
    Then a <beastadj> <beast> came along. "I know the <sign>," it said. "Hold on to my tail."
    ^<elder> had followed the <bits> that fell from <hero>'s pocket. "There you are!" cried \
        <elder.he>.
    ^<hero> beat on the <toy> with a <thing> until <friend>, who was <deed.ing>, heard the noise.
    ^<friend> came with a lantern and a rope of <stuff>, and pulled <hero> out, <sad> but safe.
    "I should have listened," said <hero>. ^<elder> only hugged <him> and gave <him> a <food>.
contest:
    There was to be a race in <home>, and the prize was a <prize>. ^<hero> wanted to win it.
    "Whoever is first to reach the <sign> will get a <prize>," said the <worker>. So <hero> put \
        down <his> name.
    Every <season> the <worker> gave a <prize> to the one who could <go> to the <sign> the fastest.
practice:
    ^<hero> practiced <where>, <where>, and even in the <room>.
    Every day <hero> <go.past> <path> <many> times, while <friend> counted.
    "You will never win," said <villager>, but <friend> said, "^<hero> is more <praise> than you \
        think."
race:
    On the day of the race, <being>, <being>, and <friend> stood beside <hero>.
    The <worker> rang a bell, and off they went, <path> and <path>.
    ^<hero> was ahead of <villager>, ahead of <being>, and ahead of everyone but <friend>.
mercy:
    Then <hero> saw a <weak> lying in the way. ^<he> stopped to help it, and <friend> won the \
        <prize>. "It is yours too," said <friend>.
    But <friend> fell over <object>. ^<hero> turned back, and they crossed the line together, last \
        of all.
    ^<hero> came last but one. Still, the <worker> gave <him> a <food> for being so <praise>.
    ^<hero> won! ^<he> looked at the <prize> and gave it to <friend>, who needed it more.
damage:
    ^<when>, <hero> was <deed.ing> when <he> knocked over <elder>'s <relicadj> <relic>. It broke.
    ^<elder> had a <relicadj> <relic> that nobody was allowed to touch. ^<when>, <hero> touched \
        it, and it broke.
    ^<hero> borrowed <elder>'s <relicadj> <relic> in secret, and <later> it was in <number> pieces.
lie:
    "Who broke my <relic>?" asked <elder>. "It was a <culprit>," said <hero>.
    When <elder> came home, <hero> hid the pieces <spot>. "It was a <culprit>," <he> said.
    "I was <deed.ing>," said <hero>, but <his> ears turned <color>. "I think I saw a <culprit>."
confession:
    At last <hero> went to <elder>. "I broke the <relic>," <he> said. "It was not the <culprit>."
    ^<hero> told the truth from beginning to end. "So it was not the <culprit>," said <elder> \
        <manner>.
    "A <relic> can be mended," said <elder>. "(I am glad you told me|The truth is worth more than \
        <object>|Thank you for telling me|It is good that you told me)." They fixed it with <stuff>.
    ^<hero> told <elder> everything and offered <elder.him> the <toycolor> <toy>. "Keep your \
        <toy>," said <elder>, "but help me <chore>."
newcomer:
    ^<when>, a family moved into a house <where>. <meeting>
    ^<when>, there was somebody new in <home>. <meeting>
    ^<hero> heard someone <deed.ing> <where>. <meeting>
meeting:
    "My name is <friend>," said a <trait> <friend.kind>, who was holding a <giftadj> <gift>.
    It was a <trait> <friend.kind> named <friend>, and <friend.he> had a <giftadj> <gift>.
    A <trait> <friend.kind> called <friend> was there, with a <giftadj> <gift> beside <friend.him>.
shyness:
    ^<friend> came from <town> and knew nobody. ^<friend.he> felt <sad>, and <friend.he> \
        <deed.past> alone.
    "In <town> we used to <deed>," said <friend>. "Here everyone is so <fault>."
    The others laughed at <friend>'s <giftadj> <gift>, and <friend> <go.past> <path>.
welcome:
    ^<hero> held out the <toycolor> <toy>. "Would you like (it for a while|to hold it|to play with \
        it until <nightfall>)?" <he> asked. ^<friend> felt <glad>.
    "I have a <toy>, and you have a <gift>," said <hero>. "We could <deed>."
    ^<hero> gave <friend> a <food> and showed <friend.him> the <place>, the <landmark>, and \
        <object>.
    ^<friend> taught <hero> to <talent>, and <hero> taught <friend> to <skill>.
noise:
    ^<when>, something went <sound>, <sound>, <sound> <where>. ^<hero> sat up in bed.
    Every night that <season>, <hero> heard something that <sound.past> <hiding>.
    ^<when>, <number> <food.s> vanished from the <room>, and nobody knew who had taken them.
tracking:
    ^<hero> took <his> <toy>, <object>, and a candle, and <go.past> <path>.
    "Is it a <job>?" whispered <friend>. "Is it a <critter>?" whispered <hero>.
    There were (footprints|crumbs|scratches|tracks) <hiding>, and they led to the <far>.
revealed:
    It was a <beastadj> <beast>, and it was <deed.ing>! "Excuse me," it said. "I was <sad>."
    ^<spot>, they found a <beastadj> <beast> with <number> babies, all of them eating <food.s>.
    "I only wanted a <food>," said a <beastadj> <beast>. "Then stay for supper," said <hero>.
    ^<hero> lifted <object>, and out came a <beastadj> <beast>. Everybody laughed except the \
        <beast>.
envy:
    ^<when>, <hero> saw <seller> with a <swap1>, and suddenly the <toycolor> <toy> seemed <adj>.
    ^<when>, <seller> came to <home> with a <swap1>, and <hero> wanted it very much.
trades:
    ^<hero> traded the <toy> for the <swap1>, the <swap1> for a <swap2>, and the <swap2> for \
        <many> <bits>.
    "I will give you the <swap1> for that <toy>," said <seller>. By <nightfall> <hero> had traded \
        the <swap1> for a <swap2>, and the next day <he> gave the <swap2> to <being> for <many> \
        <bits>.
    The <toy> became a <swap1>. The <swap1> became a <swap2>, because <villager> asked for it. And \
        the <swap2> became <many> <bits>.
regret:
    "I had a <toy>," said <hero>, "and now I have only <many> <bits>." ^<body>.
    ^<hero> looked at the <many> <bits> and thought of <his> <toysize> <toycolor> <toy>.
    "What use are <many> <bits>?" asked <friend>. ^<hero> did not know, and <he> felt <sad>.
returned:
    ^<later>, <friend> came with the <toycolor> <toy>! "^<seller> sold it to me for a <gift>," \
        <friend.he> said.
    ^<elder> had bought the <toycolor> <toy> from <seller> for a <food>. "I knew you would miss \
        it," said <elder>.
    ^<seller> needed <many> <bits>, and so <hero> got back the <toysize> <toycolor> <toy>.
disaster:
    ^<when>, the (river|sea|wind|snow) came into <home> and carried off <object> and half of the \
        <wreck>.
    ^<when>, the <wreck> fell down, and nobody could <go> to the <far>.
    ^<when>, (lightning|a falling tree|<number> runaway <critter.s>) hit the <wreck>, and it fell \
        <simile>.
teamwork:
    ^<villager> brought <object>, <villager> brought <object>, and <hero> brought the <toycolor> \
        <toy>.
    ^<hero> pulled, <friend> pushed, and <elder> <deed.past>.
    All day they worked. ^<friend> used <friend.his> <gift>, and <hero> used <object>.
restored:
    ^<later>, (it was done|the work was over|the <wreck> was mended|they had finished). \
        ^<villager> cheered, and the <worker> gave everyone a <food>.
    "It was the <toy> that saved the <wreck>," said the <worker>. "No," said <hero>, "it was \
        <friend>."
    By <nightfall> the <wreck> looked better than before, and <home> was <placeadj> again.
greed:
    ^<when>, <elder> baked <many> <food.s> for all of <home>. ^<hero> ate one, then another, then \
        the rest.
    ^<hero> found <many> <food.s> in the <room>, and <friend> had none. "They are mine," said \
        <hero>.
ache:
    ^<later>, <hero> could not <go>. ^<body>.
    "Oh, my stomach!" moaned <hero>. "It feels full of <thing.s>." ^<friend> ran to fetch <elder>.
sharing:
    The next <weekday> <hero> baked <many> <food.s> and gave them to <friend>, <villager>, and \
        <being>.
    ^<hero> let <friend> have the <toy> for a week, and <friend> let <him> hold the <giftadj> \
        <gift>.
    "Half for you and half for me," said <hero> to <friend>, and the last <food> went to <being>.
yearning:
    More than anything, <hero> wanted to <talent>. Even <villager> could <talent>!
    ^<friend> could <talent>, but <hero> could not, and it made <him> <sad>.
teaching:
    "I will teach you to <talent>," said <elder>. "First you must <deed>, and then <deed>."
    ^<hero> asked a <beastadj> <beast> for help. "To <talent>," it said, "think of <being>."
tries:
    The first time, <hero> fell over <object>. The second time, <he> <deed.past>.
    ^<he> tried <where>, <where>, and <where>, but <villager> only laughed.
    ^<many> times <hero> tried, and <many> times <he> ended up <hiding>.
mastery:
    Then <when>, all at once, <hero> could <talent>! ^<elder> clapped, and <friend> <go.past> \
        around them.
    ^<later>, <hero> tried once more, holding the <toycolor> <toy>, and this time it worked.
    "Look, I can <talent>!" cried <hero>. "I knew you would," said <elder>.
errand:
    ^<when>, <elder> asked <hero> to take <many> <bits> to <friend>, a <trait> <friend.kind> in \
        the <far>.
    "These <many> <bits> are for <friend>, the <trait> <friend.kind> by the <sign>," said <elder> \
        <when>.
arrival:
    At last <hero> saw the <sign>. There stood <friend>, waving a <giftadj> <gift>. "You came!" \
        cried <friend.he>.
    ^<friend> opened the door, a <giftadj> <gift> in <friend.his> arms. "^<many> <bits>, all for \
        me?" <friend.he> asked, and <friend.he> felt <glad>.
    They shared a <food>, and <friend> let <hero> hold <friend.his> <giftadj> <gift>.
"""
