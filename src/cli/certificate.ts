import { tellCertificate } from '../report/certificate.ts';
import { visibleLine } from '../untrusted.ts';
import type { Output } from './output.ts';

/** Prints what a certificate shows. Only for one that holds: everything here is shown as proved. */
export function printCertificate(text: string, out: Output): void {
  const told = tellCertificate(text);
  const { subject, title, project, status, isProofGrade, rows, records } = told;
  const section = (name: string) => {
    out.line();
    out.line(out.paint('bold', name));
  };
  out.line(out.paint('bold', `${subject} ${title}`.trimEnd()), subject.length + 1);
  const facts = [status, isProofGrade && 'proof-grade', project && `project ${project}`].filter(Boolean);
  out.line([...facts, plural(rows, 'audit row'), plural(records, 'record')].join(' · '));
  if (told.steps.length > 0) section('What was done');
  for (const { at, actor, isPerson, kind, verb, error, tool, task, text: what } of told.steps) {
    const did = kind === 'failure' ? `${verb}${error && ` with ${error}`}: ${tool}` : verb;
    const who = `${actor}${isPerson ? ' (cli)' : ''}`;
    out.line(`  ${dateOf(at)}  ${who}: ${[did, task, what].filter(Boolean).join(' ')}`, 6);
  }
  if (told.reasons.length > 0) section('Why, in the order in which it was recorded');
  for (const { thought, type, by, at, content, branch, commit, tests } of told.reasons) {
    out.line(`  ${out.paint('cyan', `${thought} ${type}`)} by ${by}, ${dateOf(at)}`, 4);
    for (const line of content.split('\n')) out.line(`    ${line}`.trimEnd(), 4);
    const seen = [
      branch && `branch ${branch}`,
      commit && `commit ${commit}`,
      tests.length > 0 && `tests ${tests.join(', ')}`,
    ];
    if (seen.some(Boolean)) out.line(out.paint('dim', `    ${seen.filter(Boolean).join(' · ')}`), 4);
  }
  if (told.gate.length > 0) section('The gate');
  for (const sentence of told.gate) out.line(`  ${sentence}`, 2);
  if (told.seals.length > 0) section('The seal');
  for (const { session, task, records: count, root, auditor, by, at, row, reason } of told.seals) {
    out.line(
      `  ${session} on ${task}: ${plural(count, 'record')} sealed by ${by} for ${auditor}, ${dateOf(at)}, ${row}`,
      4,
    );
    if (reason !== '') out.line(`    ${visibleLine(reason)}`, 4);
    out.line(out.paint('dim', `    root ${root}`));
  }
  if (told.skills.length > 0) section('Skills in force');
  for (const skill of told.skills) out.line(`  ${skill}`, 4);
  section('What this rests on');
}

function plural(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}

function dateOf(at: string): string {
  return `${visibleLine(at).replace('T', ' ').slice(0, 19)}Z`;
}
