// The log, and its sink with a destination that fails on purpose. Real pipes, disks, terminals: spec/system/clients/output.spec.ts.

import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { createLog, humanLine, LogSink } from '../../../src/cli/foreground/log.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('log');
const log = new URL('../../../src/cli/foreground/log.ts', import.meta.url).href;

test('writes JSON lines to standard error only, without loss at a process.exit right after', () => {
  const script = `const log = (await import('${log}')).createLog('info', false);
    for (let line = 0; line < 1000; line += 1) log.info({ line }, 'hello');
    process.exit(3);`;
  const args = ['--input-type=module', '-e', script];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  const lines = stderr.trimEnd().split('\n');
  assert.equal([status, stdout, lines.length], [3, '', 1000]);
  const { time, ...record } = JSON.parse(String(lines[999]));
  assert.equal(record, { level: 30, line: 999, msg: 'hello' });
  assert.is(new Date(time).toISOString(), time);
});

test('writes records with fields as pino does', () => {
  const own: string[] = [];
  const theirs: string[] = [];
  const log = createLog('info', false, (bytes) => {
    own.push(...Buffer.from(bytes).toString().trimEnd().split('\n'));
    return bytes.length;
  });
  const sample = pino(
    { base: null, timestamp: () => ',"time":"t"' },
    { write: (line) => theirs.push(line.trimEnd()) },
  );
  const cycle: { one?: object } = {};
  cycle.one = cycle;
  const odd = [
    {},
    [],
    ['a'],
    { a: undefined },
    new Date(0),
    { a: 1n },
    cycle,
    new Error('a'),
    { err: new Error('b') },
    null,
  ];
  const record = (fields: object | null, message?: string, ...more: unknown[]): void => {
    for (const logger of [log, sample]) logger.info(fields, message, ...more);
  };
  for (const fields of odd) record(fields, 'odd');
  record({ a: 1 });
  record({ a: 1 }, '%s things', 2);
  fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), record), { numRuns: 200 });
  for (const logger of [log, sample]) logger.fatal('the end');
  const withoutTime = (line: string) => JSON.parse(line.replace(/"time":"[^"]*"/, '"time":"t"'));
  assert.ok(own.length >= 212);
  assert.equal(own.map(withoutTime), theirs.map(withoutTime));
});

test('formats a record for a terminal as one line, with the stack of an error below', () => {
  const record = {
    time: '2026-01-02T03:04:05.678Z',
    level: 40,
    template: 'a b',
    count: 2,
    msg: 'it happened',
  };
  assert.is(humanLine(JSON.stringify(record)), '03:04:05 warn  it happened  template="a b"  count=2');
  const failed = { ...record, level: 60, err: { message: 'm', stack: 'Error: m\n at x' } };
  assert.match(humanLine(JSON.stringify(failed)), /^03:04:05 fatal it happened .*\nError: m\n at x$/);
});

test.run();

const sink = suite('log sink');

sink('writes lines together, at 16 kB or at a flush', () => {
  const { sink, writes } = open();
  sink.write('a\n');
  sink.write('b\n');
  assert.equal(writes, []);
  sink.flushSync();
  assert.equal(writes, ['a\nb\n']);
  sink.write(`${'x'.repeat(20_000)}\n`);
  assert.is(writes.length, 2);
});

sink('keeps 1 MiB of lines that a busy reader does not take, and reports the number of dropped lines', () => {
  const { sink, writes, outcome } = open();
  outcome.error = 'EAGAIN';
  const line = `${'x'.repeat(1023)}\n`;
  for (let count = 0; count < 2_000; count += 1) sink.write(line);
  assert.ok(outcome.tries < 5, 'is not tried at every line');
  outcome.error = undefined;
  sink.flushSync();
  const kept = writes.join('').match(/^x+$/gm)?.length ?? 0;
  assert.is(kept, 1024);
  const found = writes.join('');
  assert.match(found, /^\{"level":40,"time":"\S+","dropped":976,"msg":"log lines were dropped"\}$/m);
});

sink('the report of dropped lines names the worker, as every line does', () => {
  const lines: string[] = [];
  let isBusy = true;
  const write = (bytes: Uint8Array): number => {
    if (isBusy) throw Object.assign(new Error('busy'), { code: 'EAGAIN' });
    lines.push(...Buffer.from(bytes).toString().trimEnd().split('\n'));
    return bytes.length;
  };
  const log = createLog('info', false, write, 3);
  for (let count = 0; count < 1_100; count += 1) log.info({ text: 'x'.repeat(1_024) }, 'long');
  isBusy = false;
  log.fatal('the last one is written at once');
  const workers = new Set(lines.map((line) => JSON.parse(line).worker));
  assert.ok(lines.some((line) => JSON.parse(line).dropped > 0));
  assert.equal([...workers], [3]);
});

sink('delivers each line whole or counts it as dropped, whatever fails', () => {
  const trouble = fc.oneof(fc.constantFrom('EAGAIN', 'EIO'), fc.nat({ max: 12 }), fc.constant('all'));
  const step = fc.record({ lines: fc.nat({ max: 3 }), troubles: fc.array(trouble, { maxLength: 4 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      let out = '';
      let troubles: (string | number)[] = [];
      const write = (bytes: Uint8Array): number => {
        const next = troubles.shift() ?? 'all';
        if (next === 'EAGAIN' || next === 'EIO') throw Object.assign(new Error(next), { code: next });
        const taken = bytes.subarray(0, next === 'all' ? bytes.length : Number(next));
        out += Buffer.from(taken);
        return taken.length;
      };
      const sink = new LogSink(write);
      let lines = 0;
      for (const { lines: more, troubles: met } of steps) {
        for (const last = lines + more; lines < last; ) {
          lines += 1;
          sink.write(`[${lines}]\n`);
        }
        troubles = [...met];
        sink.flushSync();
      }
      troubles = [];
      sink.close();
      const delivered = out.match(/^\[\d+\]$/gm) ?? [];
      const counted = [...out.matchAll(/^{.*"dropped":(\d+),.*}$/gm)].reduce(
        (sum, [, count]) => sum + Number(count),
        0,
      );
      assert.is(new Set(delivered).size, delivered.length);
      assert.is(delivered.length + counted, lines, JSON.stringify(out));
      assert.ok(out === '' || out.endsWith('\n'));
    }),
    { numRuns: 2_000 },
  );
});

sink('gives up within 8 s when the reader takes nothing at the close', () => {
  const { sink, outcome } = open();
  outcome.error = 'EAGAIN';
  sink.write('a\n');
  const startMs = performance.now();
  sink.close();
  assert.ok(performance.now() - startMs < 8_000);
});

sink.run();

function open() {
  const writes: string[] = [];
  const outcome: { error?: string | undefined; tries: number } = { tries: 0 };
  const write = (bytes: Uint8Array) => {
    outcome.tries += 1;
    if (outcome.error !== undefined) throw Object.assign(new Error('no'), { code: outcome.error });
    writes.push(Buffer.from(bytes).toString());
    return bytes.length;
  };
  const sink = new LogSink(write);
  return { sink, writes, outcome };
}
