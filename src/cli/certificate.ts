import type { readCertificate } from '../report/certificate.ts';
import { visibleLine } from '../untrusted.ts';
import { auditRow } from '../verify/finding.ts';
import type { Output } from './output.ts';
import { plural } from './text.ts';

/** Prints what a certificate shows. Only for one that holds: everything here is shown as proved. */
export function printCertificate(told: Awaited<ReturnType<typeof readCertificate>>, out: Output): void {
  const { subject, task, thought, steps, reasons, gate, seals, skills } = told;
  const section = (name: string, entries: readonly unknown[]) => {
    if (entries.length === 0) return;
    out.line();
    out.line(out.paint('bold', name));
  };
  out.line(
    out.paint('bold', `${subject} ${thought === undefined ? (task?.title ?? '') : ''}`.trimEnd()),
    subject.length + 1,
  );
  const facts =
    task === undefined ? [] : [task.status, task.isProofGrade && 'proof-grade', `project ${task.project}`];
  out.line(
    [...facts, plural(told.rows, 'audit row'), plural(told.records, 'record')].filter(Boolean).join(' · '),
  );
  section('What was done', steps);
  for (const { at, actor, isPerson, kind, verb, error, tool, task: id, text } of steps) {
    const did = kind === 'failure' ? `${verb}${error && ` with ${error}`}: ${tool}` : verb;
    const who = `${actor}${isPerson ? ' (cli)' : ''}`;
    out.line(`  ${dateOf(at)}  ${who}: ${[did, id, text].filter(Boolean).join(' ')}`, 6);
  }
  section('Why, in the order in which it was recorded', reasons);
  for (const { id, type, recorded_by, recorded_at, content, branch, commit_sha, tests } of reasons) {
    out.line(`  ${out.paint('cyan', `${id} ${type}`)} by ${recorded_by}, ${dateOf(recorded_at)}`, 4);
    for (const line of content.split('\n')) out.line(`    ${line}`.trimEnd(), 4);
    const seen = [
      branch && `branch ${branch}`,
      commit_sha && `commit ${commit_sha}`,
      tests && `tests ${tests}`,
    ];
    if (seen.some(Boolean)) out.line(out.paint('dim', `    ${seen.filter(Boolean).join(' · ')}`), 4);
  }
  section('The gate', gate);
  for (const sentence of gate) out.line(`  ${sentence}`, 2);
  section('The seal', seals);
  for (const {
    id,
    task: of,
    sealed,
    merkle_root,
    auditor_id,
    finalized_by,
    finalized_at,
    position,
    reason,
  } of seals) {
    const by = `sealed by ${finalized_by} for ${auditor_id}, ${dateOf(finalized_at)}, ${auditRow(position)}`;
    out.line(`  ${id} on ${of}: ${plural(sealed, 'record')} ${by}`, 4);
    if (reason !== '') out.line(`    ${visibleLine(reason)}`, 4);
    out.line(out.paint('dim', `    root ${merkle_root}`));
  }
  section('Skills in force', skills);
  for (const skill of skills) out.line(`  ${skill}`, 4);
  section('What this rests on', ['']);
}

function dateOf(at: string): string {
  return `${visibleLine(at).replace('T', ' ').slice(0, 19)}Z`;
}
