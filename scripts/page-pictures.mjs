// Photographs the report, the live page, a certificate and the board for the documents: node scripts/page-pictures.mjs
// Needs what `npm run build` made, script(1) and a Chromium; COLIBRI_CHROMIUM names one that is elsewhere. Another folder than
// docs/images may be named; then every view is photographed, in the light, in the dark, on a phone and on paper.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { CHROMIUM, photograph, runOnTerminal } from './terminal-picture.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CLI = join(ROOT, 'dist', 'cli.js');
const IMAGES = join(ROOT, 'docs', 'images');
const TABS = ['summary', 'board', 'trail', 'sessions', 'checks'];

const target = resolve(process.argv[2] ?? IMAGES);
const folder = mkdtempSync(join(tmpdir(), 'colibri-pictures-'));
const env = {
  ...{ PATH: process.env.PATH, HOME: folder, XDG_CONFIG_HOME: join(folder, 'config') },
  COLIBRI_DB_PATH: join(folder, 'colibri.db'),
};

function colibri(agent, ...args) {
  const given = { cwd: folder, env: { ...env, COLIBRI_AGENT_ID: agent }, encoding: 'utf8' };
  const { stdout, stderr, status } = spawnSync(process.execPath, [CLI, ...args], given);
  if (status > 1) throw new Error(`colibri ${args.join(' ')} ended with ${status}: ${stderr}`);
  return stdout;
}

const call = (agent, tool, args) => colibri(agent, 'call', tool, JSON.stringify(args));
const create = (agent, title, more = {}) =>
  call(agent, 'task_create', { title, project: 'website', ...more });
const move = (agent, task_id, ...steps) => {
  for (const status of steps) call(agent, 'task_update', { task_id, status });
};
const think = (agent, task_id, type, content, more = {}) =>
  call(agent, 'thought_record', { task_id, type, content, ...more });

/** A small team at work: what is finished, refused, under way and waiting. */
function playTeam() {
  create('planner', 'Publish the price list', { priority: 'high', proof_grade: true, estimate_hours: 4 });
  create('planner', 'Prüfe die Übersetzung der Preisliste', { labels: ['german'], depends_on: ['T-0001'] });
  create('planner', 'Neue Produktfotos', { project: 'shop', labels: ['photos'], assignee: 'painter' });
  create('planner', 'به‌روزرسانی راهنمای فارسی', { project: 'docs', priority: 'low' });
  create('planner', 'Checkout fails on a second coupon', { project: 'shop', priority: 'critical' });
  create('planner', 'Old newsletter template', { project: 'docs' });
  call('auditor', 'audit_session_start', {
    task_id: 'T-0001',
    auditor_id: 'auditor',
    reason: 'prices are binding',
  });
  move('builder', 'T-0001', 'todo', 'in_progress');
  think('builder', 'T-0001', 'decision', 'Prices include VAT: the shop shows gross prices everywhere else.', {
    branch: 'price-list',
    commit_sha: '3f2a9c81d0b5e6f7a8b9c0d1e2f3a4b5c6d7e8f9',
    tests_run: ['prices.test.ts', 'rounding.test.ts'],
  });
  move('builder', 'T-0001', 'done', 'review');
  think(
    'builder',
    'T-0001',
    'risk',
    'Rounding differs by a cent for three articles. Listed, not changed. 🧮',
  );
  call('auditor', 'merkle_finalize', { session_id: 'A-0001' });
  move('builder', 'T-0001', 'done');
  move('builder', 'T-0002', 'todo', 'in_progress');
  think('builder', 'T-0002', 'analysis', '„inkl. MwSt.“ fehlt in zwei Spalten.');
  move('painter', 'T-0003', 'todo', 'in_progress');
  think('painter', 'T-0003', 'plan', 'Erst die neuen Artikel, dann die alten Bilder ersetzen.');
  move('builder', 'T-0005', 'todo');
  move('planner', 'T-0006', 'cancelled');
  create('planner', '发布第二版的说明并通知所有的客户', { project: 'docs', assignee: 'builder' });
  create('planner', 'Ship the new icons 🎨👩‍👩‍👧‍👦 everywhere', {
    project: 'shop',
    labels: ['photos', 'web'],
  });
  move('builder', 'T-0007', 'todo', 'in_progress');
  call('builder', 'task_update', {
    ...{ task_id: 'T-0007', status: 'blocked', blocked_reason: 'the translation is not checked yet' },
  });
}

async function main() {
  playTeam();
  const [report, certificate] = [join(folder, 'report.html'), join(folder, 'certificate.json')];
  colibri('planner', 'report', '-o', report);
  colibri('planner', 'prove', 'T-0001', '-o', certificate);
  const server = spawn(process.execPath, [CLI, 'serve', '--json'], {
    cwd: folder,
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await photographBoards();
  const browser = await chromium.launch(CHROMIUM);
  try {
    const url = await addressOf(server);
    const page = await browser.newPage({ viewport: { width: 1120, height: 840 } });
    const shoot = (name) => page.screenshot({ path: join(target, `${name}.png`) });
    const ready = () => page.waitForSelector('body[data-ready=true]');

    await page.goto(pathToFileURL(report).href);
    await ready();
    await shoot('report');
    await page.goto(pathToFileURL(join(ROOT, 'dist', 'verify.html')).href);
    await page.setInputFiles('#choose-file', certificate);
    await ready();
    await page.locator('.certificate').scrollIntoViewIfNeeded();
    await page.evaluate(() => document.querySelector('[role=tablist]')?.scrollIntoView());
    await shoot('certificate');
    await page.goto(url);
    await ready();
    await page.waitForSelector('.verdict[data-tone=good]');
    await page.click('#tab-board');
    await page.waitForSelector('.task');
    await shoot('live-page');
    if (target !== IMAGES) await photographAll(page, shoot);
  } finally {
    server.stdin.end();
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The board as a terminal shows it. */
async function photographBoards() {
  for (const columns of [80, 140]) {
    const printed = runOnTerminal(`${process.execPath} ${CLI} board --all`, { columns, cwd: folder, env });
    await photograph('colibri board --all', printed, join(target, `board-${columns}.png`));
  }
  const shown = runOnTerminal(`${process.execPath} ${CLI} show ${join(folder, 'certificate.json')}`, {
    ...{ columns: 100, cwd: folder, env },
  });
  await photograph(
    'colibri show T-0001.proof.json',
    shown.replaceAll(folder, ''),
    join(target, 'certificate-terminal.png'),
  );
}

/** Every view as it is seen at a desk, in the dark and on a phone. */
async function photographAll(page, shoot) {
  const views = { light: [1120, 840], dark: [1120, 840], phone: [390, 844] };
  for (const [name, [width, height]] of Object.entries(views)) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: name === 'dark' ? 'dark' : 'light' });
    for (const tab of TABS) {
      await page.click(`#tab-${tab}`);
      await page.waitForTimeout(500);
      await shoot(`${name}-${tab}`);
    }
    await page.evaluate(() => {
      location.hash = 'T-0001';
    });
    await page.waitForSelector('dialog[open]');
    await shoot(`${name}-task`);
    await page.keyboard.press('Escape');
  }
  await page.emulateMedia({ colorScheme: 'dark' });
  for (const tab of TABS) {
    await page.click(`#tab-${tab}`);
    await page.waitForTimeout(500);
    await page.pdf({ path: join(target, `print-${tab}.pdf`), format: 'A4' });
  }
  await page.evaluate(() => {
    location.hash = 'T-0001';
  });
  await page.waitForSelector('dialog[open]');
  await page.pdf({ path: join(target, 'print-task.pdf'), format: 'A4' });
}

function addressOf(server) {
  return new Promise((done) => {
    let text = '';
    server.stdout.setEncoding('utf8').on('data', (part) => {
      text += part;
      const [url] = /http:[^"]+/.exec(text) ?? [];
      if (text.includes('}') && url !== undefined) done(url);
    });
  });
}

await main();
