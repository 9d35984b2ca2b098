import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { runColibri } from './command-line.ts';
import type { Playground } from './playground.ts';

/** Makes the playground a git repository, and runs git in it. */
export function repository(colibri: Playground): (...args: string[]) => string {
  const who = ['-c', 'user.name=ada', '-c', 'user.email=ada@localhost'];
  const git = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('git', ['-C', colibri.folder, ...who, ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '', HOME: colibri.path('home') },
    });
    if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  git('init', '-q');
  return git;
}

/** Gives the checkpoints in git to a remote, and lets git see that the remote has them. */
export function pushCheckpoints(colibri: Playground, git: (...args: string[]) => string): void {
  const remote = colibri.path('remote.git');
  if (!existsSync(remote)) {
    git('init', '-q', '--bare', remote);
    git('remote', 'add', 'origin', remote);
  }
  git('push', '-q', 'origin', 'refs/colibri/checkpoints');
  fetchCheckpoints(git);
}

export function fetchCheckpoints(git: (...args: string[]) => string, folder = '.'): void {
  const tracked = 'refs/colibri/checkpoints:refs/remotes/origin/colibri/checkpoints';
  git('-C', folder, 'fetch', '-q', 'origin', tracked);
}

/** A time-stamping authority in a folder: a certificate that may stamp, and the answers it gives. */
export function timeStampAuthority(colibri: Playground, name: string) {
  const at = (file: string) => colibri.path(`${name}-${file}`);
  writeFileSync(
    at('conf'),
    `[req]\ndistinguished_name=dn\nx509_extensions=ext\nprompt=no\n[dn]\nCN=${name}\n[ext]\nextendedKeyUsage=critical,timeStamping\nkeyUsage=critical,digitalSignature\n[tsa]\ndefault_tsa=t\n[t]\nserial=${at('serial')}\nsigner_cert=${at('cert')}\nsigner_key=${at('key')}\nsigner_digest=sha256\ndefault_policy=1.2.3.4\ndigests=sha256\n`,
  );
  writeFileSync(at('serial'), '01\n');
  const openssl = (...args: string[]) => {
    const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
  };
  const files = ['-keyout', at('key'), '-out', at('cert'), '-config', at('conf')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  openssl('req', '-x509', ...curve, '-nodes', '-days', '2', ...files);
  return {
    certificate: at('cert'),
    answer: (query: string, answer: string) =>
      openssl('ts', '-reply', '-config', at('conf'), '-section', 't', '-queryfile', query, '-out', answer),
  };
}

/** Commits the newest checkpoint and pushes it, and has it stamped by an authority that only the caller knows. */
export async function anchorEverywhere(colibri: Playground) {
  const git = repository(colibri);
  const authority = timeStampAuthority(colibri, 'authority');
  const [query, token] = [colibri.path('question.tsq'), colibri.path('answer.tsr')];
  /** Once more, for what was added since. */
  const anchorAgain = async (reply = colibri.path('again.tsr')) => {
    await mustRun(colibri, 'anchor', '--git');
    pushCheckpoints(colibri, git);
    await mustRun(colibri, 'anchor', '--tsq', query);
    authority.answer(query, reply);
    await mustRun(colibri, 'anchor', '--tsr', reply);
  };
  await anchorAgain(token);
  return { git, authority, token, anchorAgain };
}

async function mustRun(colibri: Playground, ...args: string[]): Promise<void> {
  const { code, stderr } = await runColibri(colibri, args);
  if (code !== 0) throw new Error(`colibri ${args.join(' ')} ended with ${code}: ${stderr}`);
}
