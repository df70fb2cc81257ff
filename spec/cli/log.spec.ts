import { spawnSync } from 'node:child_process';
import * as assert from 'uvu/assert';
import { humanLine } from '../../src/cli/log.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('log');
const log = new URL('../../src/cli/log.ts', import.meta.url).href;

test('writes JSON lines to standard error and nothing to standard output', () => {
  const script = `(await import('${log}')).createLog('info', false).info({ a: 1 }, 'hello')`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  });
  const { time, ...record } = JSON.parse(stderr);
  assert.equal({ stdout, record }, { stdout: '', record: { level: 30, a: 1, msg: 'hello' } });
  assert.not.throws(() => new Date(time).toISOString());
});

test('writes everything even when the process is ended right after', () => {
  const script = `const log = (await import('${log}')).createLog('info', false);
    for (let line = 0; line < 1000; line += 1) log.info('line ' + line);
    process.exit(3);`;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  });
  assert.equal({ status, lines: stderr.trimEnd().split('\n').length }, { status: 3, lines: 1000 });
});

test('shows a record to a person as one line', () => {
  const line = humanLine(
    '{"level":40,"time":"2026-01-02T03:04:05.678Z","template":"a b","count":2,"msg":"it happened"}',
  );
  assert.is(line, '03:04:05 warn  it happened  template="a b"  count=2');
});

test('shows the stack of an error below its line', () => {
  const line = humanLine(
    '{"level":60,"time":"2026-01-02T03:04:05.678Z","err":{"message":"m","stack":"Error: m\\n at x"},"msg":"oh"}',
  );
  assert.is(line, '03:04:05 fatal oh\nError: m\n at x');
});

test.run();
