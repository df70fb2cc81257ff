// The files of a conformance run, the differences between two runs, which of them may be accepted, and how they are counted and
// reported. The runs themselves are in `npm run conformance`.

import { mkdirSync, writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../helpers/folder.ts';
import { suite } from '../helpers/suite.ts';
import { type Check, eachOnce, readChecks } from './checks.ts';
import { type Allowance, applyAllowances, compareChecks, type Difference } from './compare.ts';
import { readOptions } from './options.ts';
import { comparedOutcome, directOutcome, isGood, totalOf } from './outcome.ts';
import { Rows } from './rows.ts';
import { clientTargetsOf, targetsOf } from './run.ts';
import { SUITES } from './suites.ts';
import { CLIENT_TARGETS, type Door, TARGETS } from './targets.ts';

function check(scenario: string, id: string, status = 'SUCCESS', message?: string): Check {
  return { scenario, id, name: id, status, message };
}

function differences(direct: readonly Check[], here: readonly Check[]): Difference[] {
  return compareChecks('2025-11-25', direct, here);
}

/** `scenario/id: direct -> here` of each difference. */
function reported(found: readonly Difference[]): string[] {
  return found.map(({ scenario, id, direct, here }) => `${scenario}/${id}: ${direct} -> ${here}`);
}

const comparison = suite('conformance comparison');

comparison('finds each status that changes, each check that is missing or new, and no other order', () => {
  const same = [check('s', '1', 'WARNING'), check('s', '2', 'INFO'), check('s', '2', 'INFO')];
  const [one, other] = [check('a', '1'), { ...check('a', '1', 'FAILURE'), name: 'other' }];
  const often = [check('a', 'often', 'INFO'), check('a', 'mixed'), check('a', 'mixed')];
  const direct = [...same, one, other, check('a', '2', 'WARNING'), check('a', 'gone'), ...often];
  const here = [
    ...[check('b', 'new', 'INFO'), { ...one, status: 'WARNING' }, { ...other, status: 'SUCCESS' }],
    ...[check('a', '2', 'SKIPPED'), check('a', 'often', 'INFO'), check('a', 'often', 'INFO')],
    ...[check('a', 'mixed'), check('a', 'mixed', 'WARNING', 'why'), ...same.toReversed()],
  ];
  const found = differences(direct, here);
  assert.equal(reported(found), [
    'a/1: SUCCESS -> WARNING',
    'a/1: FAILURE -> SUCCESS',
    'a/2: WARNING -> SKIPPED',
    'a/gone: SUCCESS -> absent',
    'a/often: INFO -> 2 INFO',
    'a/mixed: 2 SUCCESS -> 1 SUCCESS + 1 WARNING',
    'b/new: absent -> INFO',
  ]);
  assert.equal(found.map(({ message }) => message).filter(Boolean), ['why']);
});

comparison('accepts only what an allowance names, as exactly as it names it', () => {
  const found = differences([check('a', '1'), check('a', '2'), check('b', '1')], []);
  const accepted = (allowance: Omit<Allowance, 'reason'>): string[] =>
    reported(applyAllowances('2025-11-25', found, [{ ...allowance, reason: 'why' }]).allowed);
  assert.equal(accepted({ scenario: 'a' }), ['a/1: SUCCESS -> absent', 'a/2: SUCCESS -> absent']);
  assert.equal(accepted({ scenario: 'a', id: '2' }), ['a/2: SUCCESS -> absent']);
  assert.equal(accepted({ scenario: 'a', id: '2', here: 'FAILURE' }), []);
  assert.equal(accepted({ scenario: 'a', id: '2', name: '2' }), ['a/2: SUCCESS -> absent']);
  assert.equal(accepted({ scenario: 'a', id: '2', name: 'other' }), []);
  assert.equal(accepted({ scenario: 'b', suite: '0.1.16' }), []);
  assert.equal(accepted({ scenario: 'b', suite: '2025-11-25' }), ['b/1: SUCCESS -> absent']);
});

comparison('names allowances of its suite that are no longer needed', () => {
  const reason = 'why';
  const stale: Allowance = { suite: '2025-11-25', scenario: 'a', reason };
  const others: Allowance[] = [
    { suite: '0.1.16', scenario: 'a', reason },
    { scenario: 'a', reason },
  ];
  assert.equal(applyAllowances('2025-11-25', [], [stale, ...others]), {
    refused: [],
    allowed: [],
    unused: [stale],
  });
});

comparison.run();

const outcomes = suite('conformance outcomes');
const modern = SUITES['2025-11-25'];
const ran = (checks: readonly Check[], problems: readonly string[] = []) => ({
  target: 'here',
  suite: modern,
  checks,
  durationMs: 1_234.5,
  problems,
});

outcomes('count scenarios: one with both kinds of differences is different', () => {
  const direct = ['a', 'b', 'c'].flatMap((scenario) => [check(scenario, '1'), check(scenario, '2')]);
  const here = [check('a', '1'), check('a', '2'), check('b', '1', 'FAILURE'), check('b', '2', 'FAILURE')];
  const allowances = [
    { scenario: 'b', id: '2', reason: 'why' },
    { scenario: 'c', reason: 'why' },
  ];
  const outcome = comparedOutcome(ran(here), direct, allowances);
  assert.equal(outcome.scenarios, { same: 1, different: 1, accepted: 1 });
  assert.equal([outcome.passed, outcome.failed, outcome.warnings, outcome.durationMs], [2, 2, 0, 1_235]);
  assert.equal([isGood(outcome), totalOf([outcome, outcome])], [false, { passed: 2, failed: 2, skipped: 2 }]);
});

outcomes('of the direct run are good only with exactly the expected numbers', () => {
  const full = Array.from({ length: modern.direct.passed }, (_, index) => check('a', String(index)));
  assert.ok(isGood(directOutcome(ran([...full, check('a', 'x', 'WARNING')]))));
  const cut = comparedOutcome(ran([check('a', '1')], ['cut after 60 s']), [check('a', '1')], []);
  assert.equal([isGood(cut), totalOf([cut]).failed], [false, 1], 'a problem fails');
  for (const checks of [
    full.slice(1),
    [...full, check('a', 'x', 'FAILURE')],
    [...full, check('a', 'x')],
    [],
  ]) {
    const outcome = directOutcome(ran(checks));
    assert.equal([isGood(outcome), totalOf([outcome]).failed], [false, 1]);
  }
});

outcomes.run();

const choice = suite('conformance targets');

choice('are chosen by parts of their names', () => {
  const names = TARGETS.map(({ name }) => name);
  const all = [...names, ...CLIENT_TARGETS.map(({ name }) => name)];
  const chosen = (...args: string[]): string[] => {
    const options = readOptions(args, all);
    return [...targetsOf(options), ...clientTargetsOf(options)].map(({ name }) => name);
  };
  assert.equal(chosen(), all);
  assert.equal(chosen('--only', 'stdio'), ['three-stdio', 'crossed-legacy-stdio', 'crossed-modern-stdio']);
  assert.equal(chosen('--only', 'one', '--only=three-http'), ['one-http', 'three-http']);
  assert.equal(chosen('--only', 'client'), ['client', 'crossed-client', 'api-client']);
  assert.equal(chosen('--only', 'direct'), []);
  assert.throws(() => chosen('--only', 'sdtio'), /no target is called sdtio: direct, one-http/);
  assert.throws(() => chosen('--color'), /usage: npm run conformance/);
});

choice('of one era accept no difference but polling, which stdio cannot have', () => {
  const accepted = TARGETS.filter(({ era }) => era === 'dual').flatMap(({ name, allowed }) =>
    allowed.map(({ scenario }) => [name, scenario]),
  );
  assert.equal(accepted, [['three-stdio', 'server-sse-polling']]);
  const [client] = CLIENT_TARGETS.filter(({ speaks }) => speaks === 'same');
  assert.equal(client?.allowed, []);
});

choice('go through the template, `/mcp` and a view, with the clients of every suite', () => {
  const doors: readonly Door[] = ['template', 'aggregate', 'view'];
  for (const suiteName of Object.keys(SUITES))
    for (const era of ['same', 'other'])
      for (const door of doors)
        assert.ok(
          TARGETS.some(
            (target) =>
              (target.era === 'dual') === (era === 'same') &&
              target.doors.includes(door) &&
              target.suites.some((each) => each === suiteName),
          ),
          `${suiteName} with a server of the ${era} era at ${door}`,
        );
});

choice.run();

const files = suite('conformance files');

const folder = folderOfEach(files);

function write(run: string, contents: Readonly<Record<string, string>>): void {
  mkdirSync(folder(run));
  for (const [name, text] of Object.entries(contents)) writeFileSync(folder(run, name), text);
}

files('are read from the folder of each scenario', async () => {
  const at = '2026-11-20T11-55-03-317Z';
  assert.equal(await readChecks(folder()), []);
  const checks = [
    { id: '1', name: 'One', status: 'WARNING', errorMessage: 'why', details: { port: 1 } },
    { id: '2', status: 'SUCCESS' },
  ];
  write(`server-tools-list-${at}`, { 'checks.json': JSON.stringify(checks) });
  write(`server-broken-off-${at}`, {});
  write('something-else', { 'checks.json': '[{"id":"3"}]' });
  assert.equal(await readChecks(folder()), [
    { scenario: 'tools-list', id: '1', name: 'One', status: 'WARNING', message: 'why' },
    { scenario: 'tools-list', id: '2', name: '2', status: 'SUCCESS', message: undefined },
  ]);
  write(`server-strange-${at}`, { 'checks.json': '[{"id":"3"}]' });
  const failure = await readChecks(folder()).catch((error: unknown) => error);
  assert.match(String(failure), 'a check of strange has no id or no status');
});

files('of a client have its last line as a check', async () => {
  for (const [scenario, output] of Object.entries({ a: 'some words\ndone\n', b: 'done\nit broke\n', c: '' }))
    write(`${scenario}-2026-11-20T11-55-03-317Z`, { 'checks.json': '[]', 'stdout.txt': output });
  const found = (await readChecks(folder())).map(({ scenario, status, message }) => [
    scenario,
    status,
    message,
  ]);
  const failed = [
    ['b', 'FAILURE', 'it broke'],
    ['c', 'FAILURE', ''],
  ];
  assert.equal(found, [['a', 'SUCCESS', undefined], ...failed]);
  const one = check('a', '1', 'INFO');
  const other = { ...one, status: 'FAILURE' };
  assert.equal(eachOnce([one, one, other, one]), [one, other]);
});

files.run();

const retries = suite('conformance rows');

for (const [isRepeating, flaky, different] of [
  [true, ['0', '1', '2'], [0, 0, 0, 1]],
  [false, [], [1, 1, 1, 1]],
] as const) {
  retries(`that differ run ${isRepeating ? 'once more, three of them at most' : 'once'}`, async () => {
    const first: string[] = [];
    const last: string[] = [];
    const differing: number[] = [];
    const report = ({ target, scenarios }: { target: string; scenarios: { different: number } }): void => {
      last.push(target);
      differing.push(scenarios.different);
    };
    const reports = { report, reportFlaky: ({ target }: { target: string }) => void first.push(target) };
    const rows = new Rows(reports, new AbortController().signal, isRepeating);
    const suite = SUITES['2025-11-25'];
    const found = (status: string) => ({ checks: [check('a', '1', status)], durationMs: 1, problems: [] });
    await rows.runDirect('direct', suite, Promise.resolve(found('SUCCESS')));
    const ran = new Set<string>();
    const rowOf = (target: string) => ({
      ...{ target, suite, allowed: [] },
      run: async () => {
        const isFirst = !ran.has(target);
        ran.add(target);
        return found(isFirst ? 'FAILURE' : 'SUCCESS');
      },
    });
    await rows.run(['0', '1', '2', '3'].map(rowOf), async () => ({ close: async () => undefined }));
    assert.equal([first, last.slice(1)], [flaky, ['0', '1', '2', '3']]);
    assert.equal(differing.slice(1), different);
  });
}

retries.run();
