"""The words of the built-in stories, apart from the grammar so that each can grow alone.

Every table maps a class of words to its members, separated by commas. Order is part of the corpus:
moving, adding or removing a word changes the text, so bump `stories.VERSION` when you do.
"""

SHE_NAMES = """
Ada, Agnes, Alma, Amara, Anya, Asha, Aurora, Beatrix, Bella, Bonnie, Bridget, Carmen, Celia, Chloe,
Clara, Cora, Dahlia, Daisy, Delia, Dora, Edith, Eliza, Ella, Elsie, Emma, Esme, Etta, Eva, Fatima,
Fern, Flora, Freya, Gemma, Greta, Hana, Hattie, Hazel, Heidi, Holly, Ida, Imani, Ines, Iris, Ivy,
Jade, Josie, June, Kaya, Kira, Lena, Leila, Lily, Lola, Lotta, Lucy, Luna, Mabel, Maeve, Maya, Mei,
Mila, Mina, Mira, Molly, Nadia, Nell, Nina, Noor, Nora, Olive, Opal, Orla, Paloma, Pearl, Petra,
Polly, Poppy, Priya, Rosa, Rosie, Ruby, Sadie, Sana, Selma, Signe, Sofia, Stella, Suki, Tessa, Thea,
Tilly, Uma, Vera, Violet, Wanda, Willa, Yara, Zara, Zelda, Zoe
"""

HE_NAMES = """
Abel, Adam, Albert, Alfie, Amir, Anton, Archie, Arlo, Arthur, Axel, Barney, Basil, Ben, Boris,
Bruno, Caleb, Carlos, Casper, Cosmo, Cyrus, Dario, Davi, Dexter, Diego, Edgar, Eli, Elmer, Emil,
Enzo, Ezra, Felix, Finn, Fred, Gabe, George, Gus, Hal, Hamid, Harvey, Hector, Henry, Hugo, Ian,
Igor, Isaac, Ivan, Jack, Jamal, Jasper, Joel, Jonas, Karl, Kenji, Kofi, Lars, Leo, Leon, Linus,
Louis, Luca, Magnus, Malik, Marco, Max, Milo, Moses, Ned, Niko, Noah, Odin, Omar, Oscar, Otis, Otto,
Pablo, Percy, Pete, Quentin, Rafi, Ravi, Remy, Rex, Rory, Rufus, Samir, Sam, Seth, Silas, Simon,
Sven, Tariq, Teddy, Theo, Toby, Tom, Ulrich, Victor, Walter, Yusuf, Zeke
"""

ANIMAL_NAMES = """
Acorn, Biscuit, Blink, Bramble, Button, Clover, Cricket, Crumb, Dash, Dumpling, Fennel, Fidget, Fig,
Flick, Freckle, Fudge, Gingersnap, Hopper, Inky, Juniper, Kip, Marble, Moss, Mumble, Nettle,
Nibbles, Nutmeg, Paprika, Patch, Pebble, Pepper, Pickle, Pip, Pippin, Pumpkin, Quill, Scout, Smudge,
Snip, Socks, Sorrel, Sprout, Squeak, Sunny, Tango, Thistle, Thimble, Toffee, Truffle, Tumble, Twig,
Waffles, Whisk, Wink, Ziggy
"""

NOUNS = {
    "animal": """
badger, bear, beaver, bunny, calf, cat, chipmunk, colt, donkey, duck, fox, frog, goat, goose,
hamster, hare, hedgehog, hen, kitten, koala, lamb, lizard, mole, monkey, mouse, otter, owl, panda,
penguin, piglet, pony, puppy, rabbit, raccoon, rooster, seal, squirrel, toad, turtle, wolf cub
""",
    "helper": """
blackbird, crane, crow, dragonfly, eagle, falcon, ferret, firefly, gull, heron, jackdaw, kingfisher,
magpie, mole, moth, newt, nightingale, otter, owl, parrot, peacock, pelican, pigeon, raven, robin,
salamander, snail, sparrow, spider, stork, swan, toad, tortoise, water rat, weasel, woodpecker,
wren, cat, dog, goat
""",
    "critter": """
ant, baby bird, bat, bee, beetle, bumblebee, butterfly, caterpillar, chick, cow, crab, cricket,
deer, dove, duckling, eel, field mouse, finch, firefly, fish, fox, frog, gecko, goldfinch, goose,
grasshopper, hen, horse, ladybug, lamb, lizard, mole, moth, mouse, owl, pigeon, rabbit, robin, seal,
sheep, snail, sparrow, spider, squirrel, starling, stork, swallow, swan, tadpole, turtle, wasp, worm
""",
    "patient": """
baby bird, bat, bumblebee, cricket, dove, duckling, field mouse, finch, fledgling, gosling, hare,
hedgehog, kitten, lamb, ladybug, lizard, mole, moth, mouse, owl chick, puppy, rabbit, robin,
sparrow, squirrel, swallow, toad, turtle
""",
    "treasure": """
accordion, balloon, bell, blanket, boat, book, bow, bracelet, bucket, button, cap, clock, coat,
compass, crown, cup, doll, drum, fan, fiddle, flag, flute, globe, hat, hammer, hoop, horn, jar, jug,
kettle, key, kite, lamp, lantern, locket, magnet, map, mask, mirror, mitten, mug, music box,
necklace, notebook, paintbrush, pencil, pillow, pinwheel, pocket watch, puppet, purse, rattle, ring,
rocking horse, sailboat, satchel, scarf, scooter, shell, shovel, sled, slingshot, spoon, spyglass,
stamp, teapot, telescope, top, trumpet, umbrella, vase, violin, wagon, whistle, yo-yo, toy train,
toy tractor, toy robot, teddy bear
""",
    "thing": """
anchor, apron, arrow, axe, barrel, basin, basket, bathtub, battery, bed, bench, bicycle, birdcage,
bonnet, boot, bottle, bowl, box, brick, bridle, broom, brush, cage, cake tin, candle, candlestick,
canoe, carpet, carrot, chair, chest, chimney pot, cloak, comb, cork, crate, cushion, cymbal, dish,
door, doorknob, drawer, dress, easel, eggcup, envelope, feather, fishing rod, flowerpot, fork,
fountain pen, frying pan, funnel, garden gnome, gate, glove, grindstone, hammock, handkerchief,
harp, haystack, helmet, hinge, horseshoe, hourglass, ink pot, jacket, jigsaw, keyhole, ladder,
ladle, letter, lid, lock, log, loom, magnifying glass, mailbox, mattress, milk jug, mop, mousetrap,
nail, napkin, needle, nest, net, nutcracker, oar, oven, painting, pan, parasol, parcel, pebble,
pedal, piano, picnic basket, picture frame, pipe, pitchfork, plank, plate, plow, pot, pump, quilt,
rake, raft, ribbon, rolling pin, rope, rug, ruler, sack, saddle, sail, saucer, saw, scarecrow,
screw, seesaw, shelf, shield, shoe, sieve, signpost, skate, slipper, snow globe, sock, spade,
spinning wheel, sponge, spring, stick, stool, stove, string, suitcase, sundial, sweater, swing,
sword, table, tambourine, thimble, ticket, toolbox, tray, treasure chest, tricycle, tripod, trowel,
trunk, tub, typewriter, vest, waffle iron, wallet, weather vane, wheel, wig, wind chime, window,
wreath, xylophone, hat box, coat hanger, corkscrew, footstool, jug, paddle, top hat, bedpost,
armchair, soup pot
""",
    "small": """
acorn, apple seed, bead, berry, blossom, button, cherry, chestnut, clover leaf, coin, daisy,
dandelion, egg, feather, fern, fir cone, flower, grape, hazelnut, leaf, lemon, marble, mushroom,
nut, pear, pebble, petal, pinecone, plum, poppy, pumpkin seed, radish, raspberry, ribbon, rose,
shell, snail shell, stamp, star, stick, stone, strawberry, sunflower, thimble, tulip, turnip, twig,
violet, walnut
""",
    "dish": """
apple pie, baked potato, biscuit, blueberry muffin, bun, butter cookie, carrot cake, cheese
sandwich, cherry tart, cinnamon roll, corn cake, crumpet, cupcake, custard tart, doughnut, dumpling,
fruit tart, ginger cookie, honey cake, jam sandwich, lemon cake, meatball, mushroom pie, nut bar,
oatcake, omelet, onion tart, pancake, peach pie, pear tart, pickle, plum cake, potato cake, pretzel,
pumpkin pie, raisin bun, rice ball, scone, seed cake, toffee apple, waffle, walnut loaf
""",
    "place": """
alley, apple orchard, barnyard, bay, birch wood, bog, botanical garden, cabbage field, canal, cattle
yard, cherry grove, churchyard, clearing, corn field, cornfield, courtyard, creek, fairground, farm,
fern valley, fish market, flower market, forest, garden, gorge, harbor, heath, hollow, lagoon,
lavender field, maple wood, market, market square, marsh, maze, meadow, moor, mountain pass, nutting
wood, oak wood, olive grove, orchard, park, pasture, pear orchard, pine forest, playground, plaza,
pumpkin patch, quarry, railway yard, ravine, reed bed, rose garden, schoolyard, shipyard, snowfield,
stable yard, strawberry field, swamp, tulip field, valley, vegetable garden, vineyard, walled
garden, wheat field, willow wood, zoo, greenwood, mudflat, chestnut grove, bamboo grove, moss
garden, sheep pen, fish pond, beech wood, sand pit, tea garden
""",
    "landmark": """
anthill, apple tree, bakery, bandstand, barn, beehive, bell tower, birdbath, blacksmith shop,
boathouse, bonfire, boulder, bridge, bus stop, cabin, cave, chapel, chestnut tree, chicken coop,
clock tower, coal shed, compost heap, crossroads, dam, ditch, dovecote, duck pond, elm tree,
farmhouse, ferry, fig tree, fir tree, flagpole, fountain, gatehouse, grain silo, greenhouse,
hayloft, hedge, hen house, holly bush, inn, ivy wall, jetty, lamppost, library, lighthouse, lilac
bush, mill, milestone, mulberry tree, museum, oak, observatory, pier, pigsty, pine tree, post
office, rain barrel, rope bridge, rose bush, sandpit, sawmill, schoolhouse, scarecrow, shed, shop,
stable, station, statue, stone arch, sweet shop, toolshed, tower, toy shop, treehouse, tunnel, wall,
watchtower, waterfall, waterwheel, well, willow, windmill, woodpile, water tower, stone circle,
weeping willow, garden gate, garden wall, city gate
""",
    "building": """
bakery, bandstand, barn, bell tower, boathouse, bridge, chapel, clock tower, dam, drawbridge,
fountain, gatehouse, granary, greenhouse, inn, jetty, library, lighthouse, market hall, mill,
museum, observatory, pier, post office, rope bridge, sawmill, schoolhouse, stable, stone arch, town
hall, watchtower, waterwheel, windmill
""",
    "job": """
baker, barber, beekeeper, blacksmith, bookseller, bus driver, butcher, carpenter, clockmaker,
cobbler, conductor, cook, dancer, dentist, doctor, farmer, ferryman, fiddler, firefighter,
fisherman, florist, gardener, glassblower, goatherd, grocer, innkeeper, juggler, king, librarian,
lighthouse keeper, locksmith, mail carrier, mason, mayor, miller, milliner, miner, musician, night
watchman, nurse, painter, peddler, pilot, plumber, poet, potter, printer, queen, ranger, sailor,
schoolteacher, sculptor, shepherd, shopkeeper, singer, soldier, tailor, toymaker, weaver,
woodcutter, zookeeper
""",
    "part": """
bottom, brim, buckle, button, clasp, corner, cover, edge, handle, hinge, hole, hook, label, latch,
lid, lining, loop, patch, pattern, pocket, rim, seam, spot, strap, stripe, tail, tassel, tip, top
""",
    "fear": """
bee, big dog, bull, clown, cow, crow, goose, high bridge, ladder, loud drum, mask, owl, scarecrow,
shadow, snake, spider, swing, tall slide, thunderstorm, train, tunnel, vacuum cleaner, wave,
windmill
""",
}

VERBS = {
    "go": """
amble, bounce, bound, canter, crawl, creep, dance, dart, dash, drift, gallop, glide, hike, hobble,
hop, hurry, jog, leap, limp, march, pad, parade, plod, prance, race, ramble, roam, run, rush,
saunter, scamper, scramble, scurry, shuffle, skip, slip, sneak, sprint, stagger, steal, stomp,
stride, stroll, stumble, swagger, tiptoe, toddle, tramp, trek, trot, trudge, waddle, wade, walk,
wander, whirl, zigzag
""",
    "handle": """
admire, balance, borrow, brush, bury, buy, carry, catch, clean, collect, count, cover, decorate, dig
up, drag, draw, drop, dust, empty, examine, fetch, find, fix, forget, grab, hang up, hide, hold,
inspect, keep, kick, knock over, label, lend, lift, lose, measure, mend, move, notice, pack, paint,
pat, photograph, pick up, poke, polish, pull, push, put away, repair, rescue, roll, rub, scrub,
sell, shake, share, sketch, smell, sniff, spin, squeeze, steal, stitch, study, swap, swing, tap,
throw, tickle, toss, touch, trade, trip over, turn over, twist, unwrap, wash, wave, weigh, wind up,
wipe, wrap, buff, steady
""",
    "see": """
admire, catch sight of, come across, come upon, discover, find, gaze at, glance at, glimpse, notice,
observe, pass, peer at, point at, remember, see, spot, stare at, stumble upon
""",
    "greet": """
avoid, bow to, catch sight of, chase, follow, greet, hear, help, invite, laugh at, meet, nod at,
notice, pass, race, scare, see, smile at, spot, startle, talk to, thank, visit, wait for, watch,
wave at, whistle at, wink at
""",
    "gather": """
arrange, collect, count, dig up, draw, fetch, find, gather, hide, hunt for, juggle, label, line up,
look for, paint, pick, pile up, plant, search for, sell, share, sketch, sort, stack, string
together, trade, wash
""",
    "chase": """
bother, catch, chase, count, draw, feed, follow, frighten, greet, imitate, listen to, look after,
name, paint, pet, play with, race, sing to, sketch, study, talk to, teach, watch
""",
    "build": """
assemble, build, carve, craft, design, fold, invent, make, mold, patch together, shape, weave
""",
    "cook": """
bake, burn, buy, cook, decorate, eat, enjoy, make, munch, nibble, sell, share, steal, taste
""",
    "speak": """
add, admit, announce, boast, call, chirp, chuckle, confess, cry, declare, explain, exclaim, giggle,
groan, grumble, insist, laugh, moan, mumble, murmur, mutter, observe, promise, remark, say, say,
say, say, shout, sigh, sing, snap, sniff, squeak, stammer, suggest, wail, warn, whimper, whisper,
yawn, yell, gasp, hum, squeal, bellow, croak
""",
    "ask": "ask, ask, ask, beg, call, cry, demand, inquire, say, shout, whisper, wonder",
    "skill": """
bake bread, blow bubbles, climb ropes, cook soup, dance, dive, do a cartwheel, do magic tricks,
fish, float, fly a kite, ice-skate, juggle, knit, milk a goat, paint, play chess, play the banjo,
play the bagpipes, play the drums, play the flute, play the piano, read, recite poems, ride a
bicycle, ride a donkey, row a boat, sail, sew, sing, skate, ski, skip rope, spin plates, surf, swim,
tell jokes, tie knots, walk on stilts, whistle, write, yodel
""",
    "sound": """
bang, bark, buzz, chirp, clang, clatter, click, crackle, creak, croak, drip, groan, growl, gurgle,
hiss, hoot, howl, hum, jingle, moan, murmur, patter, purr, rattle, ring, roar, rumble, rustle,
scrape, scratch, shriek, sigh, squeak, squeal, thud, thump, tick, tinkle, wail, whine, whir,
whisper, whistle
""",
    "rest": """
sit, rest, wait, nap, hide, sleep, kneel, hum, dream, sulk, doze, camp, whistle, wake up
""",
}

WORDS = {
    "kin": """
aunt, big brother, big sister, brother, cousin, father, grandfather, grandmother, mother, sister,
uncle
""",
    "surname": """
Abbott, Alder, Appleby, Barley, Baxter, Birch, Bixby, Bloom, Brook, Button, Carter, Chan, Cobb,
Crane, Dove, Dumont, Everly, Finch, Flint, Fowler, Garcia, Gardner, Gupta, Hale, Hart, Hobbs, Holt,
Jensen, Kettle, Khan, Kim, Lark, Larsen, Lopez, Marsh, Moon, Moss, Novak, Oakley, Okafor, Otter,
Peck, Pepper, Plum, Quick, Reed, Rivera, Rossi, Sato, Snow, Sparrow, Stone, Swift, Tanaka, Thorn,
Tuck, Underhill, Vale, Webb, Whistler, Wolf, Wren, Yang, York
""",
    "town": """
Alderford, Amberly, Applewick, Barleyton, Beechwood, Bellbrook, Birdsong Hill, Bluebell Bay,
Brambleby, Brightwater, Candlewick, Cherry Corner, Cloverdale, Copper Creek, Cricket Hill,
Crumbleton, Dapplewood, Dewberry, Driftwood Cove, Eastmarch, Elderbrook, Fernhollow, Fiddler's
Green, Foxglove, Frostford, Gooseberry Lane, Greenwater, Hartsfield, Hazelmere, Honeywell, Juniper
Hill, Kettleby, Lanternport, Larkspur, Lilypond, Long Meadow, Maplewick, Marigold, Millbrook,
Mistlebay, Mossy Bank, Nettlefold, North Harbor, Oakhaven, Orchard End, Otterburn, Pebble Beach,
Pinecrest, Plumstead, Puddleby, Quillton, Rainford, Redstone, Rosehill, Saltmarsh, Seagull Point,
Silverdale, Snowdrop, Southwold, Starling Wood, Sunnybank, Swallowfield, Thistledown, Thornbury,
Tumbledown, Violet Vale, Westering, Whitepool, Willowbend, Windmill Rise, Woolly Hill, Yarrow
""",
    "color": """
amber, black, blue, bronze, brown, copper, cream, crimson, dark blue, dark green, gold, golden,
gray, green, ivory, lavender, lilac, maroon, mint green, navy, olive, orange, peach, pink, plum,
purple, red, rose, rusty red, scarlet, silver, sky blue, tan, teal, turquoise, violet, white, yellow
""",
    "size": """
big, enormous, fat, flat, giant, huge, large, little, long, miniature, narrow, plump, round, short,
skinny, small, square, tall, thick, thin, tiny, wide
""",
    "adj": """
ancient, awkward, battered, beautiful, bent, borrowed, bright, broken, bumpy, carved, cheap,
chipped, clean, cloudy, clumsy, cold, colorful, cracked, creaky, crooked, curious, curly, damp,
dented, dirty, dull, dusty, elegant, empty, expensive, faded, fancy, fine, floppy, forgotten,
fragile, fresh, funny, fuzzy, gleaming, glittering, glossy, greasy, handsome, heavy, hollow,
homemade, icy, itchy, leaky, light, lonely, loose, lopsided, lovely, lucky, lumpy, magic, marvelous,
mended, messy, modern, muddy, mysterious, neat, new, noisy, odd, oily, old, ordinary, painted,
patched, peculiar, perfect, plain, pointed, polished, precious, pretty, prickly, quaint, ragged,
rare, rough, royal, rusty, rickety, scratched, secret, shabby, sharp, shiny, shaky, silly, simple,
slippery, smelly, smooth, soft, solid, spare, sparkling, special, splendid, spotless, spotted,
squeaky, sticky, stiff, strange, striped, sturdy, tangled, tattered, terrible, torn, twisted, ugly,
unusual, upside-down, useless, warm, weathered, wet, wobbly, wonderful, worn, wrinkled
""",
    "placeadj": """
bright, busy, chilly, cold, cool, crowded, dark, dewy, dim, distant, dry, dusty, empty, flowery,
foggy, fragrant, frosty, frozen, gloomy, golden, grassy, green, hushed, icy, lonely, lovely, misty,
moonlit, mossy, muddy, narrow, noisy, old, overgrown, peaceful, pretty, quiet, rainy, rocky, sandy,
shadowy, shady, silent, silvery, sleepy, snowy, spooky, steep, stony, sunlit, sunny, swampy, tidy,
vast, warm, wet, wide, wild, windy, wintry
""",
    "trait": """
adventurous, absent-minded, bashful, bold, bookish, bossy, brave, careful, careless, cautious,
cheeky, cheerful, chatty, clever, clumsy, confident, cranky, curious, daring, dreamy, eager,
earnest, energetic, fearless, forgetful, friendly, funny, fussy, generous, gentle, giggly, graceful,
greedy, grumpy, hasty, helpful, hopeful, hungry, imaginative, impatient, inventive, jolly, kind,
lazy, lively, lonely, loud, loyal, mischievous, modest, moody, neat, nervous, noisy, nosy, patient,
playful, plucky, polite, proud, quick, quiet, restless, sensible, serious, shy, silly, sleepy, sly,
smart, solemn, stubborn, sweet, talkative, thoughtful, tidy, timid, tricky, trusting, wise, witty,
young
""",
    "praise": """
bold, brave, careful, clever, considerate, courageous, daring, faithful, generous, gentle, good,
gracious, hard-working, helpful, honest, humble, kind, loyal, modest, noble, patient, plucky,
polite, quick-witted, sensible, steady, strong, thoughtful, trusty, unselfish, wise, cheerful,
warm-hearted
""",
    "fault": """
absent-minded, bossy, careless, clumsy, cowardly, cranky, fidgety, foolish, forgetful, fussy,
greedy, grumpy, hasty, impatient, impolite, lazy, loud, mean, messy, moody, noisy, nosy, proud,
reckless, rude, selfish, silly, slow, sly, stubborn, thoughtless, tricky, unkind, vain, young
""",
    "glad": """
amazed, blissful, brave, calm, cheerful, comfortable, contented, curious, delighted, eager, elated,
excited, fortunate, glad, grateful, happy, hopeful, jolly, joyful, lighthearted, lucky, peaceful,
playful, pleased, proud, relieved, safe, satisfied, thankful, thrilled, warm, wonderful, at home, at
peace, merry
""",
    "sad": """
afraid, alone, angry, annoyed, anxious, ashamed, awful, bitter, clumsy, cold, confused, cross,
disappointed, dizzy, embarrassed, foolish, forgotten, frightened, furious, gloomy, glum, grumpy,
guilty, helpless, homesick, hopeless, hungry, hurt, impatient, jealous, lonely, lost, miserable,
nervous, puzzled, restless, sad, scared, shaky, shy, sick, silly, small, sorry, stubborn, surprised,
terrible, tired, uneasy, unhappy, unlucky, upset, weak, weary, worried, worn out
""",
    "adverb": """
angrily, anxiously, bitterly, boldly, bravely, briskly, brightly, calmly, carefully, carelessly,
cheerfully, clumsily, coldly, crossly, curiously, darkly, dreamily, eagerly, earnestly, fiercely,
firmly, foolishly, gently, gladly, gloomily, gracefully, gratefully, grumpily, happily, hastily,
hopefully, impatiently, joyfully, kindly, lazily, lightly, loudly, merrily, modestly, nervously,
nicely, noisily, patiently, playfully, politely, proudly, quickly, quietly, rudely, sadly, secretly,
seriously, shyly, sleepily, slowly, softly, solemnly, stiffly, stubbornly, suddenly, sweetly,
tenderly, thoughtfully, timidly, warmly, wearily, wisely
""",
    "bearing": """
at once, in a hurry, with a bow, with a frown, with a grin, with a laugh, with a nod, with a shrug,
with a sigh, with a smile, without a word, with a wink, with a yawn, with great care
""",
    "landadj": """
abandoned, ancient, broken, creaking, crooked, crumbling, deserted, famous, forgotten, haunted,
leaning, little, lonely, lopsided, mossy, new, noisy, old, painted, peaceful, quiet, ruined, rusty,
secret, shabby, shady, sleepy, snow-covered, sunny, tall, tiny, tumbledown, whitewashed, wooden,
brick
""",
    "fabric": """
bamboo, brass, canvas, cardboard, clay, copper, corduroy, cotton, crystal, glass, iron, leather,
linen, marble, oak, paper, pine, plastic, rubber, satin, silk, steel, stone, straw, tin, velvet,
wax, wicker, wooden, woolen
""",
    "stuff": """
bark, birch wood, brass, bread dough, bricks, cardboard, clay, cloth, cork, cotton, driftwood, felt,
glass, gold, grass, ice, iron, leather, leaves, linen, marble, mud, newspaper, oak, old socks,
paper, pine, porcelain, reeds, sand, scraps, silk, silver, snow, stone, straw, string, sugar, tin,
twigs, velvet, walnut shells, wax, willow branches, wire, wood, wool
""",
    "smell": """
apples, bread, burnt toast, campfires, chalk, cheese, chocolate, cinnamon, cloves, coffee, damp
earth, fish, fresh paint, garlic, ginger, grass, hay, honey, ink, lavender, lemons, licorice, mint,
moss, mud, old books, onions, oranges, peppermint, pine needles, popcorn, rain, roses, salt, smoke,
soap, soup, strawberries, summer, tea, thyme, toffee, vanilla, wet dog, wood
""",
    "number": """
two, two, three, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen,
fourteen, fifteen, sixteen, seventeen, eighteen, nineteen, twenty, twenty-one, thirty, forty, fifty,
sixty, a dozen, a hundred
""",
    "season": """
autumn, fall, spring, summer, winter, January, March, April, May, June, July, October, November
""",
    "weekday": "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",
    "daypart": "morning, afternoon, evening, day, night",
    "dayadj": """
beautiful, blustery, breezy, bright, chilly, clear, cloudy, cold, cool, crisp, dark, dreary,
drizzly, dull, fine, foggy, freezing, frosty, glorious, golden, gray, hazy, hot, icy, lazy, lovely,
mild, misty, muggy, pleasant, quiet, rainy, snowy, sparkling, stormy, sunny, sweltering, warm, wet,
wild, windy
""",
    "room": """
attic, barn, bathroom, bedroom, cellar, classroom, garage, hall, kitchen, laundry room, library,
living room, music room, parlor, pantry, playroom, porch, storeroom, study, workshop
""",
    "game": """
catch, checkers, dominoes, follow the leader, hide-and-seek, hopscotch, leapfrog, marbles, ninepins,
pirates, shopkeepers, tag, tug-of-war, twenty questions
""",
    "virtue": """
courage, courtesy, curiosity, forgiveness, friendship, generosity, gentleness, gratitude, honesty,
hope, humor, kindness, laughter, listening, loyalty, patience, practice, sharing, trust, truth
""",
}

IRREGULAR_PASTS = """
begin began, build built, buy bought, catch caught, come came, creep crept, dig dug, draw drew, eat
ate, feed fed, find found, fly flew, forget forgot, go went, hang hung, have had, hear heard, hide
hid, hold held, keep kept, kneel knelt, leap leapt, lend lent, lie lay, lose lost, make made, meet
met, put put, read read, ride rode, ring rang, run ran, say said, see saw, sell sold, shake shook,
sing sang, sit sat, sleep slept, slide slid, spin spun, steal stole, stride strode, string strung,
sweep swept, swim swam, swing swung, take took, teach taught, tell told, think thought, throw threw,
weave wove, wind wound, write wrote, wake woke, do did, blow blew, give gave
"""

IRREGULAR_PLURALS = """
calf calves, deer deer, fish fish, goose geese, leaf leaves, loaf loaves, mouse mice, pants pants,
sheep sheep, shelf shelves, wolf wolves
"""
