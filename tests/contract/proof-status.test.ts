import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { pushCheckpoints, repository, timeStampAuthority } from '../driver/anchor-places.ts';
import { withDatabase } from '../driver/audit-file.ts';
import { runColibri } from '../driver/command-line.ts';
import { cutCleanly, type LogDesk, proves, rewrite } from './log-desk.ts';

interface Shown {
  readonly intact: boolean;
  readonly checkpointed: boolean;
  readonly anchored: boolean;
  readonly checkpoint: number | null;
  readonly anchors: readonly { readonly source: string; readonly size: number; readonly time?: string }[];
  readonly findings: readonly { readonly kind: string; readonly message: string }[];
  readonly remarks: readonly string[];
  readonly history: readonly { readonly position: number; readonly proof: string }[];
  readonly code: number | null;
}

async function show(desk: LogDesk, id: string): Promise<Shown> {
  const { code, stdout, stderr } = await desk.run('show', id, '--json');
  if (stdout === '') throw new Error(stderr);
  return { ...(JSON.parse(stdout) as Omit<Shown, 'code'>), code };
}

/** The mark of each call that `colibri log` shows, oldest first, and its exit code. */
async function log(desk: LogDesk): Promise<{ marks: string[]; code: number | null; stderr: string }> {
  const { code, stdout, stderr } = await desk.run('log', '--json');
  const lines = stdout.split('\n').filter(Boolean);
  return { marks: lines.map((line) => (JSON.parse(line) as { proof: string }).proof), code, stderr };
}

/** Adds rows that nobody signs: the key is away meanwhile. */
async function unsignedWork(desk: LogDesk): Promise<void> {
  const key = join(desk.logFolder, 'key.pem');
  renameSync(key, `${key}.away`);
  await desk.moreWork('unsigned');
  renameSync(`${key}.away`, key);
}

describe('show and log say how well a record is proved', () => {
  proves(
    ['verdict.record', 'verdict.ranges'],
    'intact, checkpointed and anchored each reach as far as they do',
    async (desk) => {
      const git = repository(desk.colibri);
      await desk.work();
      await desk.run('anchor', '--git');
      pushCheckpoints(desk.colibri, git);
      const anchored = desk.positions().length;
      await desk.moreWork('signed, not anchored');
      await unsignedWork(desk);

      const shown = await Promise.all(['TH-0001', 'TH-0005', 'TH-0006'].map((id) => show(desk, id)));
      const { marks, code } = await log(desk);
      const people = await desk.run('log');

      expect(shown.map(({ checkpointed, anchored }) => [checkpointed, anchored])).toEqual([
        [true, true],
        [true, false],
        [false, false],
      ]);
      expect(shown.map((one) => one.code)).toEqual([1, 1, 1]);
      expect(shown[0]?.findings).toEqual([
        expect.objectContaining({ message: expect.stringContaining("this log's key did not sign") }),
      ]);
      expect(shown[0]?.anchors).toEqual([expect.objectContaining({ source: 'git', size: anchored })]);
      expect(shown[0]?.history.map(({ proof }) => proof)).toEqual(['anchored']);
      expect(marks).toEqual([...Array(7).fill('anchored'), 'checkpointed', 'unsigned']);
      expect(people.stdout.split('\n').flatMap((line) => /^[◆●○✗?]/u.exec(line) ?? [])).toEqual([
        ...Array(7).fill('◆'),
        '●',
        '○',
      ]);
      expect(code).toBe(1);
    },
  );

  proves(
    ['verdict.record', 'anchor.stamp'],
    'a time stamp counts once its authority is named, and tells its time',
    async (desk) => {
      await desk.work();
      const at = (name: string) => desk.colibri.path(name);
      const authority = timeStampAuthority(desk.colibri, 'good');
      await desk.run('anchor', '--tsq', at('q.tsq'));
      authority.answer(at('q.tsq'), at('a.tsr'));

      await desk.run('anchor', '--tsr', at('a.tsr'));
      const unnamed = await show(desk, 'TH-0001');
      await desk.run('anchor', '--tsr', at('a.tsr'), '--ca', authority.certificate);
      const named = await show(desk, 'TH-0001');
      const people = await desk.run('show', 'TH-0001');

      expect(unnamed).toMatchObject({ anchored: false, checkpointed: true, code: 0 });
      expect(unnamed.remarks.join(' ')).toContain('its authority was not checked');
      expect(named.anchors).toEqual([
        expect.objectContaining({ source: 'tsr', time: expect.stringMatching(/GMT$/) }),
      ]);
      expect(people.stdout).toMatch(
        /◆ anchored: time stamp, the checkpoint of \d+ rows, .* with a time stamp of .* GMT/,
      );
    },
  );

  proves(
    ['verdict.record', 'detect.rewritten'],
    'rows that were rewritten and recomputed are not called checkpointed or anchored',
    async (desk) => {
      const git = repository(desk.colibri);
      await desk.work();
      await desk.run('anchor', '--git');
      pushCheckpoints(desk.colibri, git);
      desk.tamper((db) =>
        rewrite(db, (row) => {
          if (row.position === 6) row.duration_ms = 12_345;
        }),
      );

      const untouched = await show(desk, 'TH-0004');
      const { marks, code, stderr } = await log(desk);

      expect(untouched).toMatchObject({ intact: false, checkpointed: false, anchored: false, code: 1 });
      expect(untouched.findings[0]).toMatchObject({ kind: 'unlinked' });
      expect(marks).toEqual(Array(7).fill('wrong'));
      expect(stderr).toContain('history was rewritten');
      expect(code).toBe(1);
    },
  );

  proves('verdict.record', 'what is shown beside a row is held against the row', async (desk) => {
    await desk.work();
    desk.tamper((db) => db.exec(`UPDATE texts SET text = replace(text, 'second', 'secret')`));

    const { marks, code } = await log(desk);

    expect(marks).toEqual([...Array(3).fill('checkpointed'), 'wrong', ...Array(3).fill('checkpointed')]);
    expect(code).toBe(1);
  });

  proves(
    ['verdict.record', 'detect.cut-tail'],
    'a cut tail is named, and what an older head still covers is still said',
    async (desk) => {
      await desk.work();
      const end = desk.positions().length;
      await desk.moreWork();
      desk.tamper((db) => cutCleanly(db, end));

      const shown = await show(desk, 'TH-0001');
      const { marks, code, stderr } = await log(desk);

      expect(shown).toMatchObject({ intact: false, checkpointed: true, code: 1 });
      expect(shown.findings.map(({ message }) => message)).toEqual([
        expect.stringContaining('cut off, or an older copy was restored'),
      ]);
      expect(marks).toEqual(Array(7).fill('checkpointed'));
      expect(stderr).toContain('its newest rows were cut off');
      expect(code).toBe(1);
    },
  );

  proves(
    ['verdict.record', 'detect.column'],
    'a row that lost its time, its position or its form is shown as damaged, and nothing else is hidden',
    async (desk) => {
      await desk.work();
      const { marks } = await log(desk);
      const [row = 0] = desk.positions("stage = 'exit'").slice(2);
      const set = (text: string) => () =>
        desk.tamper((db) => db.exec(`UPDATE actions SET text = ${text} WHERE position = ${row}`));
      const changes = [
        set("json_set(text, '$.position', 1)"),
        set("json_remove(text, '$.at')"),
        // SQLite itself would refuse a text that is not JSON; somebody with an editor does not ask it.
        set("replace(text, 'duration_ms', 'duration_mx')"),
        () => {
          const bytes = readFileSync(desk.dbPath);
          bytes.write('x', bytes.indexOf('duration_mx') - 1);
          writeFileSync(desk.dbPath, bytes);
        },
      ];
      for (const [i, change] of changes.entries()) {
        change();

        const after = await log(desk);
        const people = await desk.run('log', '--since', '2026-01-01');
        const shown = await show(desk, 'TH-0001');

        expect(after.marks, String(i)).toEqual(marks.map((mark, at) => (at === 2 ? 'wrong' : mark)));
        expect(people.stdout.match(/^✗ /gm), String(i)).toHaveLength(1);
        expect(people.stdout.includes('damaged'), String(i)).toBe(i > 0);
        expect([after.code, people.code, shown.code], String(i)).toEqual([1, 1, 1]);
      }
    },
  );

  for (const position of [8, 99])
    proves(
      'verdict.record',
      `a changed task that says row ${position} wrote it later is not taken for that`,
      async (desk) => {
        await desk.work();
        desk.tamper((db) =>
          db.exec(`UPDATE tasks SET assignee = 'mallory', position = ${position} WHERE id = 1`),
        );

        const { marks, code } = await log(desk);

        expect(code).toBe(1);
        expect(marks).toContain('wrong');
      },
    );

  proves('verdict.record', 'a record put back as it once was is not called intact', async (desk) => {
    await desk.work();
    const task = 'SELECT * FROM tasks WHERE id = 1';
    const before = withDatabase(desk.dbPath, (db) => db.prepare(task).get()) as Record<string, string>;
    const server = await desk.colibri.start();
    await desk.ok(server, 'task_update', { task_id: 'T-0001', status: 'todo' });
    await server.closeInput();
    desk.tamper((db) => {
      const columns = (db.pragma('table_info(tasks)') as { name: string }[]).map(({ name }) => name);
      const sql = `UPDATE tasks SET ${columns.map((name) => `${name} = ?`)} WHERE id = 1`;
      db.prepare(sql).run(...columns.map((name) => before[name] ?? null));
    });

    const shown = await show(desk, 'T-0001');

    expect(shown).toMatchObject({ intact: false, code: 1 });
    expect(shown.findings.map(({ kind }) => kind)).toEqual(['stale']);
  });

  proves(
    ['verdict.record', 'verdict.key'],
    'without a key of his own a stranger believes the one that the name of the log belongs to; without git nothing is anchored in it',
    async (desk) => {
      const git = repository(desk.colibri);
      await desk.work();
      await desk.run('anchor', '--git');
      pushCheckpoints(desk.colibri, git);
      const stranger = { env: { XDG_CONFIG_HOME: desk.colibri.path('nobody') } };

      const unknown = await runColibri(desk.colibri, ['show', 'TH-0001', '--json'], stranger);
      const story = await runColibri(desk.colibri, ['log', '--json', '-n', '1'], stranger);
      rmSync(desk.colibri.path('.git'), { recursive: true });
      const gone = await show(desk, 'TH-0001');

      expect(JSON.parse(unknown.stdout)).toMatchObject({ intact: true, checkpointed: true, anchored: true });
      expect(JSON.parse(unknown.stdout).remarks.join(' ')).toContain('This user has no key for this log');
      expect(JSON.parse(story.stdout)).toMatchObject({ proof: 'anchored' });
      expect(gone).toMatchObject({ checkpointed: true, anchored: false });
      expect(gone.remarks.join(' ')).toContain('no longer exists');
    },
  );

  proves(
    ['verdict.record', 'detect.read-only'],
    'log and show claim nothing wrong while servers write and sign',
    async (desk) => {
      await desk.work();
      const server = await desk.colibri.start();
      let busy = true;
      const writing = (async () => {
        for (let i = 0; busy; i += 1) await desk.think(server, `thought ${i}`);
      })();

      const codes: (number | null)[] = [];
      for (let i = 0; i < 3; i += 1) {
        const [, told, one] = await Promise.all([
          desk.run('checkpoint'),
          desk.run('log'),
          desk.run('show', 'T-0001'),
        ]);
        codes.push(told.code, one.code);
      }
      busy = false;
      await writing;
      await server.closeInput();

      expect(codes).toEqual(Array(6).fill(0));
    },
  );
});
