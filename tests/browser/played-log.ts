import { anchorEverywhere } from '../driver/anchor-places.ts';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';

/** What an agent might write to whoever reads the report. */
export const HOSTILE_TITLE =
  '<script>document.title="owned"</script><img src=x onerror=alert(1)> \u202Elive\u202C \u200B';
export const HOSTILE_THOUGHT = `</script><script>alert(2)</script>\u202E reversed \u0007 ${'x'.repeat(4_800)}`;

/** What the first thought says it was written at. */
export const COMMIT = '0123456789abcdef0123456789abcdef01234567';

/** Records of the longest session: more than its picture shows at once. */
export const MANY = 21;

export interface PlayedLog {
  readonly colibri: Playground;
  readonly git: (...args: string[]) => string;
  readonly report: string;
  readonly folder: string;
  readonly zip: string;
  readonly session: string;
  readonly certificate: string;
}

/** A log through the built server, with a sealed session, an open one, failures and hostile text; then every kind of export. */
export async function playLog(): Promise<PlayedLog> {
  const colibri = new Playground();
  const server = await colibri.start({ clientName: 'builder' });
  const create = (args: object) => server.call('task_create', args);
  const think = (task_id: string, type: string, content: string) =>
    server.call('thought_record', { task_id, type, content });
  const move = async (task_id: string, ...steps: string[]) => {
    for (const status of steps) await server.call('task_update', { task_id, status });
  };
  await create({ title: 'Foundations', project: 'house', proof_grade: true, priority: 'high' });
  await create({
    title: 'Roof',
    project: 'house',
    assignee: 'carpenter',
    labels: ['wood'],
    parent_id: 'T-0001',
  });
  await create({ title: HOSTILE_TITLE, project: 'odd', description: 'y'.repeat(8_000) });
  await create({ title: 'Garden', project: 'garden', workflow: 'pipeline' });
  await create({ title: 'Chimney', project: 'house', depends_on: ['T-0002'], estimate_hours: 3 });
  await move('T-0005', 'cancelled');
  await server.call('audit_session_start', {
    task_id: 'T-0001',
    auditor_id: 'inspector',
    scope: 'deep',
    reason: 'building code',
  });
  await move('T-0001', 'todo', 'in_progress');
  await server.call('thought_record', {
    ...{ task_id: 'T-0001', type: 'decision', content: 'Dig to two metres.' },
    ...{ branch: 'footing', commit_sha: COMMIT, tests_run: ['soil test', 'water test'] },
  });
  await think('T-0001', 'risk', 'Water at one metre.');
  await move('T-0002', 'todo', 'in_progress');
  await think('T-0002', 'plan', 'Slate, not tiles.');
  await move('T-0001', 'done', 'review');
  await server.call('merkle_finalize', { session_id: 'A-0001' });
  await move('T-0001', 'done');
  await think('T-0003', 'reflection', HOSTILE_THOUGHT);
  await move('T-0004', 'GATHER');
  await server.call('task_update', { task_id: 'T-9999', status: 'todo' });
  await server.call('no_such_tool', {});
  await server.call('audit_session_start', { task_id: 'T-0002', auditor_id: 'inspector' });
  await server.call('task_list', { project: 'house' });
  await server.call('audit_session_start', { task_id: 'T-0004', auditor_id: 'inspector' });
  for (let step = 1; step <= MANY; step += 1) await think('T-0004', 'analysis', `Bed ${step} is dug.`);
  await server.call('merkle_finalize', { session_id: 'A-0003' });
  await server.closeInput();
  const second = await colibri.start({ clientName: 'painter' });
  await second.call('thought_record', {
    task_id: 'T-0002',
    type: 'risk',
    content: 'Paint needs a dry week.',
  });
  await second.closeInput();
  const { git } = await anchorEverywhere(colibri);

  const paths = {
    report: colibri.path('report.html'),
    folder: colibri.path('whole'),
    zip: colibri.path('whole.zip'),
    session: colibri.path('session.json'),
    certificate: colibri.path('certificate.json'),
  };
  await mustRun(colibri, ['report', '-o', paths.report]);
  await mustRun(colibri, ['export', '-o', paths.folder]);
  await mustRun(colibri, ['export', '-o', paths.zip]);
  await mustRun(colibri, ['prove', 'A-0001', '-o', paths.session]);
  await mustRun(colibri, ['prove', 'T-0001', '-o', paths.certificate]);
  return { colibri, git, ...paths };
}

export async function mustRun(colibri: Playground, args: readonly string[]): Promise<void> {
  const { code, stderr } = await runColibri(colibri, args);
  if (code !== 0) throw new Error(`colibri ${args.join(' ')} ended with ${code}: ${stderr}`);
}
