import { NOTHING_FROM_OUTSIDE } from './requirements/nothing-from-outside.ts';
import { ONE_PATH } from './requirements/one-path.ts';
import { RECORDS } from './requirements/records.ts';
import { START_MODES_STOP } from './requirements/start-modes-stop.ts';
import { TRAIL_AND_PROOFS } from './requirements/trail.ts';
import { TRANSPARENCY_LOG } from './requirements/transparency-log.ts';
import { TASKS } from './requirements-tasks.ts';

/** Each promise of SPEC, section by section: an id, and the promise in our own words. A new section is a new line here. */
export const sections = [
  { section: 2, title: 'Start, modes, stop', requirements: START_MODES_STOP },
  { section: 3, title: 'One path for every call', requirements: ONE_PATH },
  { section: 3, title: 'Nothing from outside acts', requirements: NOTHING_FROM_OUTSIDE },
  { section: 4, title: 'Records', requirements: RECORDS },
  { section: 5, title: 'Tasks', requirements: TASKS },
  { section: 5, title: 'Trail and proofs', requirements: TRAIL_AND_PROOFS },
  { section: 6, title: 'Transparency log', requirements: TRANSPARENCY_LOG },
] as const;

type IdsOf<S> = S extends { readonly requirements: infer R } ? keyof R : never;

export type RequirementId = IdsOf<(typeof sections)[number]>;
