import type { SessionRow } from '../domains/facts.ts';
import { numberFrom, shown, shownColumns } from '../domains/lookup.ts';
import { formatId, SESSIONS, TASKS } from '../log/tables.ts';
import { command } from './command.ts';
import { ageOf, PERIOD_OPTIONS, readPeriod } from './dates.ts';
import { withLog } from './open.ts';
import { type Column, LIST_OPTIONS, printListing, readLimit } from './table.ts';
import { viewRow } from './views.ts';

/** Proof sessions in lines, the newest first. */
export const sessions = command({
  name: 'sessions',
  usage: '[--project NAME] [--open] [--since TIME] [--until TIME]',
  summary: 'list proof sessions, the newest first',
  details:
    '--since and --until refer to the time a session was opened. "colibri show A-0001" shows one with its records.',
  options: {
    project: { value: 'NAME', help: 'only sessions on tasks of this project' },
    open: { help: 'only sessions that are not sealed yet' },
    ...PERIOD_OPTIONS,
    ...LIST_OPTIONS,
  },
  async run({ values, out, config }) {
    const { since, until } = readPeriod(values);
    const limit = readLimit(values, out);
    const asked = [
      values.project ?? config.project ?? null,
      values.open === true ? 1 : 0,
      since,
      until,
    ] as const;
    const { rows, total } = await withLog(config, out, (storage) =>
      storage.read(async (tx) => ({
        rows: await tx.all<Found>(`${SELECT} ORDER BY sessions.id DESC LIMIT ?`, ...asked, limit),
        total: await numberFrom(tx, `SELECT count(*) AS value ${FROM}`, ...asked),
      })),
    );
    return printListing(
      {
        name: 'sessions',
        rows,
        columns: COLUMNS,
        data: rows.map((row) => viewRow(SESSIONS, { ...row })),
        total,
        nothing: 'No session matches.',
      },
      values,
      out,
    );
  },
});

type Found = SessionRow & { readonly title: string; readonly project: string; readonly records: number };

const FROM = `FROM sessions JOIN (SELECT id AS of_task, project, ${shown(TASKS, 'title')} FROM tasks) AS named ON of_task = task_id
  WHERE project = coalesce(?, project) AND (? = 0 OR status = 'open') AND started_at BETWEEN ? AND ?`;
const SELECT = `SELECT ${shownColumns(SESSIONS)}, title, project,
  (SELECT count(*) FROM session_records r WHERE r.session_id = sessions.id) AS records ${FROM}`;

const SHORT_HASH = 12;

const COLUMNS: readonly Column<Found>[] = [
  { name: 'id', text: ({ id }) => formatId(SESSIONS, id), colour: () => 'bold' },
  {
    name: 'status',
    text: ({ status }) => status,
    shown: ({ status }) => (status === 'finalized' ? 'sealed' : status),
    colour: ({ status }) => (status === 'finalized' ? 'green' : 'yellow'),
  },
  { name: 'started_at', head: 'age', text: (row) => row.started_at, shown: (row) => ageOf(row.started_at) },
  { name: 'started_by', head: 'by', text: (row) => row.started_by },
  { name: 'auditor_id', head: 'auditor', text: (row) => row.auditor_id },
  { name: 'records', text: ({ records }) => String(records) },
  {
    name: 'merkle_root',
    head: 'root',
    text: ({ merkle_root }) => merkle_root ?? '',
    shown: ({ merkle_root }) => merkle_root?.slice(0, SHORT_HASH) ?? '',
    colour: () => 'dim',
  },
  { name: 'finalized_at', text: ({ finalized_at }) => finalized_at ?? '', isData: true },
  { name: 'project', text: ({ project }) => project, isData: true },
  { name: 'task', text: ({ task_id }) => formatId(TASKS, task_id) },
  { name: 'title', text: ({ title }) => title },
  { name: 'reason', text: ({ reason }) => reason ?? '', isData: true },
];
