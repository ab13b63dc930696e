"""The words of the demo corpus, in tables as a dictionary prints them. Knows words; knows no sentences."""

# English/plural (where not in -s; nothing for what is not counted), German with article, genitive and plural, kind, tags.
# Tags say what a noun goes with; of the "single" there is one, the "alone" are nobody's.
NOUNS = """
man/men der Mann Mannes Männer person alone; woman/women die Frau Frau Frauen person alone
boy der Junge Jungen Jungen person alone; girl das Mädchen Mädchens Mädchen person alone
child/children das Kind Kindes Kinder person; teacher der Lehrer Lehrers Lehrer person; doctor der Arzt Arztes Ärzte person
neighbour der Nachbar Nachbarn Nachbarn person; friend der Freund Freundes Freunde person; guest der Gast Gastes Gäste person
student der Student Studenten Studenten person; colleague der Kollege Kollegen Kollegen person
baker der Bäcker Bäckers Bäcker person; mother die Mutter Mutter Mütter person single
father der Vater Vaters Väter person single; grandmother die Großmutter Großmutter Großmütter person single
brother der Bruder Bruders Brüder person; sister die Schwester Schwester Schwestern person; son der Sohn Sohnes Söhne person
uncle der Onkel Onkels Onkel person; aunt die Tante Tante Tanten person; daughter die Tochter Tochter Töchter person
dog der Hund Hundes Hunde animal; cat die Katze Katze Katzen animal; horse das Pferd Pferdes Pferde animal
bird der Vogel Vogels Vögel animal
apple der Apfel Apfels Äpfel food; egg das Ei Eis Eier food; cake der Kuchen Kuchens Kuchen food
pear die Birne Birne Birnen food; potato/potatoes die Kartoffel Kartoffel Kartoffeln food
bread/ das Brot Brotes Brot mass eat; cheese/ der Käse Käses Käse mass eat; meat/ das Fleisch Fleisches Fleisch mass eat
water/ das Wasser Wassers Wasser mass drink; milk/ die Milch Milch Milch mass drink; tea/ der Tee Tees Tee mass drink
coffee/ der Kaffee Kaffees Kaffee mass drink
bottle die Flasche Flasche Flaschen thing goods stand; cup die Tasse Tasse Tassen thing goods stand
vase die Vase Vase Vasen thing goods stand; basket der Korb Korbes Körbe thing goods stand
lamp die Lampe Lampe Lampen thing goods stand device; radio das Radio Radios Radios thing goods device
computer der Computer Computers Computer thing goods device; television der Fernseher Fernsehers Fernseher thing goods device
oven der Ofen Ofens Öfen thing device; book das Buch Buches Bücher thing goods lie text
letter der Brief Briefes Briefe thing lie text small; newspaper die Zeitung Zeitung Zeitungen thing goods lie
key der Schlüssel Schlüssels Schlüssel thing lie small; knife/knives das Messer Messers Messer thing goods lie small
pencil der Bleistift Bleistifts Bleistifte thing goods lie small
ticket die Fahrkarte Fahrkarte Fahrkarten thing goods lie small; photo das Foto Fotos Fotos thing lie small
door die Tür Tür Türen thing open; window das Fenster Fensters Fenster thing open; box/boxes die Kiste Kiste Kisten thing open
suitcase der Koffer Koffers Koffer thing goods open; coat der Mantel Mantels Mäntel thing goods wear
shirt das Hemd Hemdes Hemden thing goods wear; hat der Hut Hutes Hüte thing goods wear
jacket die Jacke Jacke Jacken thing goods wear; dress/dresses das Kleid Kleides Kleider thing goods wear
car das Auto Autos Autos vehicle own; bicycle das Fahrrad Fahrrads Fahrräder vehicle own
bus/buses der Bus Busses Busse vehicle public alone; train der Zug Zuges Züge vehicle public alone
table der Tisch Tisches Tische furniture; bed das Bett Bettes Betten furniture; chair der Stuhl Stuhls Stühle furniture
bench/benches die Bank Bank Bänke furniture; cupboard der Schrank Schranks Schränke furniture
garden der Garten Gartens Gärten place outside; park der Park Parks Parks place outside alone
forest der Wald Waldes Wälder place outside alone; kitchen die Küche Küche Küchen place room
office das Büro Büros Büros place room; room das Zimmer Zimmers Zimmer place room
house das Haus Hauses Häuser place building home; school die Schule Schule Schulen place building
church/churches die Kirche Kirche Kirchen place building alone; museum das Museum Museums Museen place building alone
hotel das Hotel Hotels Hotels place building home alone; theatre das Theater Theaters Theater place building alone
station der Bahnhof Bahnhofs Bahnhöfe place building alone; castle das Schloss Schlosses Schlösser place building home alone
"""

# English, comparative (- for none); German predicative, stem before an ending, comparative; kinds of noun
ADJECTIVES = """
old older alt alt älter person animal thing vehicle furniture place; young younger jung jung jünger person animal
tall taller groß groß größer person; big bigger groß groß größer animal food thing vehicle furniture place
small smaller klein klein kleiner animal food thing vehicle furniture place; rich richer reich reich reicher person
friendly friendlier freundlich freundlich freundlicher person; clever cleverer klug klug klüger person animal
strong stronger stark stark stärker person animal; happy happier glücklich glücklich glücklicher person
sad sadder traurig traurig trauriger person; famous more_famous berühmt berühmt berühmter person
tired - müde müd - person animal; ill - krank krank - person animal; hungry - hungrig hungrig - person animal
new newer neu neu neuer thing vehicle furniture place; fresh fresher frisch frisch frischer food mass
expensive more_expensive teuer teur teurer food mass thing vehicle furniture
cheap cheaper billig billig billiger food mass thing vehicle furniture
beautiful more_beautiful schön schön schöner animal thing vehicle furniture place; good - gut gut - food mass
heavy heavier schwer schwer schwerer furniture; quiet quieter ruhig ruhig ruhiger place
dark darker dunkel dunkl dunkler place; cold - kalt kalt - mass
red - rot rot - thing vehicle furniture; blue - blau blau - thing vehicle furniture
green - grün grün - thing vehicle furniture; white - weiß weiß - animal thing vehicle furniture
black - schwarz schwarz - animal thing vehicle furniture
"""

# English base, he, past, participle, particle = German infinitive, he, participle (- where only the present is used)
# = frame, tags of the object, < tags of subjects. The object may stand behind a preposition: auf+acc.
VERBS = """
buy buys bought bought = kaufen kauft gekauft = acc goods food mass own furniture
sell sells sold sold = verkaufen verkauft verkauft = acc goods food mass own furniture
need needs needed - = brauchen braucht - = acc goods mass
have has had - = haben hat - = acc goods animal small own
bring brings brought brought = bringen bringt gebracht = acc food mass stand lie
see sees saw seen = sehen sieht gesehen = acc person animal vehicle building
draw draws drew drawn = zeichnen zeichnet gezeichnet = acc person animal building
visit visits visited visited = besuchen besucht besucht = acc person
look looks looked looked for = suchen sucht gesucht = acc person animal small
find finds found found = finden findet gefunden = acc animal small
lose loses lost lost = verlieren verliert verloren = acc small
know knows knew - = kennen kennt - = acc person
like likes liked - = mögen mag - = acc person animal mass
meet meets met met = treffen trifft getroffen = acc person
ask asks asked asked = fragen fragt gefragt = acc person
invite invites invited invited = ein|laden lädt eingeladen = acc person
call calls called called = an|rufen ruft angerufen = acc person
pick picks picked picked up = ab|holen holt abgeholt = acc person
feed feeds fed fed = füttern füttert gefüttert = acc animal
eat eats ate eaten = essen isst gegessen = acc food eat
drink drinks drank drunk = trinken trinkt getrunken = acc drink
cut cuts cut cut = schneiden schneidet geschnitten = acc food
read reads read read = lesen liest gelesen = acc text
write writes wrote written = schreiben schreibt geschrieben = acc text
turn turns turned turned on = ein|schalten schaltet eingeschaltet = acc device
turn turns turned turned off = aus|schalten schaltet ausgeschaltet = acc device
open opens opened opened = öffnen öffnet geöffnet = acc open
close closes closed closed = schließen schließt geschlossen = acc open
repair repairs repaired repaired = reparieren repariert repariert = acc device vehicle
wash washes washed washed = waschen wäscht gewaschen = acc wear own
put puts put put on = an|ziehen zieht angezogen = acc wear
take takes took taken off = aus|ziehen zieht ausgezogen = acc wear
throw throws threw thrown away = weg|werfen wirft weggeworfen = acc lie wear
give gives gave given back = zurück|geben gibt zurückgegeben = acc lie
tidy tidies tidied tidied up = auf|räumen räumt aufgeräumt = acc room
help helps helped helped = helfen hilft geholfen = dat person
thank thanks thanked thanked = danken dankt gedankt = dat person
answer answers answered answered = antworten antwortet geantwortet = dat person
listen listens listened listened to = zu|hören hört zugehört = dat person
follow follows followed followed = folgen folgt ist gefolgt = dat person animal
belong belongs belonged - to = gehören gehört - = dat person < goods own animal
wait waits waited waited for = warten wartet gewartet = auf+acc person public
think thinks thought thought of = denken denkt gedacht = an+acc person
talk talks talked talked about = sprechen spricht gesprochen = über+acc person building
talk talks talked talked to = sprechen spricht gesprochen = mit+dat person
dream dreams dreamed dreamed of = träumen träumt geträumt = von+dat person animal own
play plays played played with = spielen spielt gespielt = mit+dat person animal
give gives gave given = geben gibt gegeben = give food lie stand
show shows showed shown = zeigen zeigt gezeigt = give lie wear own
send sends sent sent = schicken schickt geschickt = give text small
lend lends lent lent = leihen leiht geliehen = give goods
put puts put put = stellen stellt gestellt = put stand
put puts put put = legen legt gelegt = put lie
stand stands stood - = stehen steht - = on furniture < stand
lie lies lay - = liegen liegt - = on furniture < lie animal
sit sits sat - = sitzen sitzt - = on furniture < person animal
work works worked worked = arbeiten arbeitet gearbeitet = in outside room building
live lives lived - = wohnen wohnt - = in home city
sleep sleeps slept slept = schlafen schläft geschlafen = in outside room building < person animal
sing sings sang sung = singen singt gesungen = in outside room building
wait waits waited waited = warten wartet gewartet = in outside room building
go goes went gone = gehen geht ist gegangen = to outside room building
run runs ran run = laufen läuft ist gelaufen = to outside room building < person animal
drive drives drove driven = fahren fährt ist gefahren = to building city
travel travels travelled travelled = reisen reist ist gereist = to city
get gets got got up = auf|stehen steht ist aufgestanden = none
fall falls fell fallen asleep = ein|schlafen schläft ist eingeschlafen = none < person animal
laugh laughs laughed laughed = lachen lacht gelacht = none
arrive arrives arrived arrived = an|kommen kommt ist angekommen = none < person public
leave leaves left left = ab|fahren fährt ist abgefahren = none < public
say says said said = sagen sagt gesagt = that
believe believes believed believed = glauben glaubt geglaubt = that
know knows knew - = wissen weiß - = that
try tries tried tried to = versuchen versucht versucht = infinitive
forget forgets forgot forgotten to = vergessen vergisst vergessen = infinitive
begin begins began begun to = an|fangen fängt angefangen = infinitive
be is was - = sein ist - = be < person animal thing vehicle place
cost costs cost - = kosten kostet - = price < goods own furniture
"""

# name = English for he and for the others, auxiliary for he and for the others, what follows the auxiliary = German
MODALS = """
can = can can can can - = kann kannst kann können
must = must must must must - = muss musst muss müssen
must not = must must must must - = darf darfst darf dürfen
should = should should should should - = sollte solltest sollte sollten
want to = wants_to want_to does do want_to = will willst will wollen
have to = has_to have_to does do have_to = muss musst muss müssen
wanted to = wanted_to wanted_to did did want_to = wollte wolltest wollte wollten
had to = had_to had_to did did have_to = musste musstest musste mussten
"""
IRREGULAR = {"sein": "bin bist ist sind", "mögen": "mag magst mag mögen", "wissen": "weiß weißt weiß wissen"}
PRETERITE = {"sein": "war warst war waren", "haben": "hatte hattest hatte hatten"}
PRONOUNS = {"I": "me ich mich mir", "you": "you du dich dir", "he": "him er ihn ihm"}
PRONOUNS |= {"she": "her sie sie ihr", "we": "us wir uns uns", "they": "them sie sie ihnen"}
NAMES = ("Anna", "Paul", "Maria", "Peter", "Lena", "Robert")
CITIES = (("Berlin", "Berlin"), ("Hamburg", "Hamburg"), ("Vienna", "Wien"), ("Munich", "München"), ("Cologne", "Köln"))

# Forms for nominative, accusative, dative and genitive; "p" is the plural of every gender.
DER = {"m": "der den dem des", "f": "die die der der", "n": "das das dem des", "p": "die die den der"}
DIESER = {"m": "er en em es", "f": "e e er er", "n": "es es em es", "p": "e e en er"}
EIN = DIESER | {"m": "- en em es", "n": "- - em es"}
UNCHANGED = dict.fromkeys("mfnp", "- - - -")
STRONG = DIESER | {"m": "er en em en", "n": "es es em en"}
WEAK = {"m": "e en en en", "f": "e e en en", "n": "e e en en", "p": "en en en en"}
MIXED = WEAK | {"m": "er en en en", "n": "es es en en"}

# Definite or not; name, English singular and plural, German stem; how it ends and how an adjective ends after it.
# English negates the verb where German says "kein": "not a lamp", "not any milk".
DETERMINERS = (
    (True, "the the the -", DER, WEAK),
    (True, "this this these dies; which which which welch; every every - jed; all - all all", DIESER, WEAK),
    (True, "my my my mein; your your your dein; his his his sein; her her her ihr", EIN, MIXED),
    (True, "our our our unser; their their their ihr", EIN, MIXED),
    (True, "Anna's Anna's Anna's Annas; Peter's Peter's Peter's Peters", UNCHANGED, STRONG),
    (False, "a a - ein; not_a a - kein; not_any - - kein", EIN, MIXED),
    (False, "many - many viel; how_many - how_many wie_viel; some - some einig", DIESER, STRONG),
    (False, "bare - - -", UNCHANGED, STRONG),
)
