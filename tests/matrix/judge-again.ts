// Judges the forged logs that a run of the matrix left, on whatever Node runs this, and says where it finds anything else.
// usage: node tests/matrix/judge-again.ts FOLDER
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  foundIn,
  type Judgement,
  judgeBundle,
  judgeDatabase,
  type Place,
  placeIn,
  rangesIn,
} from './sources.ts';

interface Said {
  readonly origin: string;
  readonly said: Readonly<Record<'database' | 'bundle', unknown>>;
}

const folder = process.argv[2] ?? '';
const judges = {
  database: judgeDatabase,
  bundle: (place: Place) => judgeBundle(place, join(place.folder, 'bundle.zip')),
} satisfies Record<string, (place: Place) => Promise<Judgement>>;

let count = 0;
const different: string[] = [];
for (const name of readdirSync(folder)) {
  const file = join(folder, name, 'judged.json');
  if (!existsSync(file)) continue;
  const { origin, said } = JSON.parse(readFileSync(file, 'utf8')) as Said;
  const place = placeIn(join(folder, name), origin);
  for (const [source, judge] of Object.entries(judges)) {
    if (!(source in said)) continue;
    count += 1;
    const judged = await judge(place);
    const now = JSON.stringify({ found: foundIn(judged), ranges: rangesIn(judged) });
    const before = JSON.stringify(said[source as keyof Said['said']]);
    if (now !== before) different.push(`${name} ${source}: ${now} instead of ${before}`);
  }
}
for (const line of different) console.error(line);
console.error(`Node ${process.version}: ${count} sources judged again, ${different.length} differently.`);
process.exitCode = different.length === 0 && count > 0 ? 0 : 1;
