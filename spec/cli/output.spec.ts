// The output of commands: tables, facts and JSON, and the characters that may reach a terminal.

import * as assert from 'uvu/assert';
import { CommandInput } from '../../src/cli/command.ts';
import { detailLines, duration, indentedJson, printable, stateWord, table } from '../../src/cli/output.ts';
import { shownReasonOf, shownStateOf } from '../../src/cli/remote/answers.ts';
import { suite } from '../helpers/suite.ts';
import { recordingTerminal } from './recording-terminal.ts';

const test = suite('output');
const plain = recordingTerminal();

test('draws a table that fits the terminal, with all of its text', () => {
  const headings = { NAME: 'name', STATE: 'state', BACKEND: 'backend', REASON: 'reason' } as const;
  const backend = '/opt/somewhere/very/deep/below/there/bin/server-program';
  const reason = 'it exited with code 1 before it answered the handshake';
  const rows = [{ name: 'one', state: 'healthy', backend, reason }];
  const whole = table(plain, headings, rows);
  assert.match(whole, `${backend}  ${reason}`);
  assert.is(table(recordingTerminal({ columns: 200 }), headings, rows), whole);
  for (const columns of [40, 60, 80, 100]) {
    const lines = table(recordingTerminal({ columns }), headings, rows).split('\n');
    for (const line of lines) assert.ok(line.length <= columns, `${columns}: ${line}`);
    const [third = 0, fourth = 0] = ['BACKEND', 'REASON'].map((heading) => lines[0]?.indexOf(heading));
    const below = lines.slice(1);
    assert.is(below.map((line) => line.slice(third, fourth).trim()).join(''), backend);
    const words = below.map((line) => line.slice(fourth).trim()).filter((text) => text !== '');
    assert.is(words.join(' '), reason);
  }
});

test('cuts no letters that take two columns of a narrow terminal', () => {
  for (const text of ['日本語の説明文です。'.repeat(8), '\u{1f600}'.repeat(40)]) {
    for (const columns of [1, 50]) {
      const rows = [{ name: '一覧', text }];
      const drawn = table(recordingTerminal({ columns }), { N: 'name', T: 'text' }, rows);
      // The name is at the beginning of the first line.
      assert.is(drawn.split('\n').slice(1).join('').replaceAll(' ', ''), `一覧${text}`);
    }
  }
});

test('cuts no word in colour on a very narrow terminal', () => {
  const rows = [{ name: 'instance-1', state: '\u001b[31munhealthy\u001b[39m', reason: 'connection refused' }];
  const headings = { NAME: 'name', STATE: 'state', REASON: 'reason' } as const;
  assert.match(table(recordingTerminal({ columns: 12 }), headings, rows), 'unhealthy');
});

test('omits columns that are empty or zero in every row on a terminal, unless it is wide or piped', () => {
  const headings = { NAME: 'name', CALLS: 'calls', FAILED: () => '0.0 %', REASON: () => '' } as const;
  const rows = [0, 2].map((calls) => ({ name: 'a', calls }));
  const headOf = (text: string) => text.split('\n')[0];
  const person = recordingTerminal({ columns: 80 });
  const narrow = new CommandInput([], new Map());
  assert.is(headOf(table(person, headings, rows, narrow)), 'NAME  CALLS');
  assert.is(headOf(table(person, headings, rows)), 'NAME  CALLS  FAILED  REASON');
  assert.is(headOf(table(plain, headings, rows, narrow)), 'NAME  CALLS  FAILED  REASON');
});

test('aligns facts, and wraps them on a terminal below their value', () => {
  assert.is(
    detailLines(plain, [
      ['a', 1],
      ['long', 'x'],
    ]),
    'a     1\nlong  x',
  );
  const text = detailLines(recordingTerminal({ columns: 20 }), [['name', 'one two three four']]);
  assert.is(text, 'name  one two three\n      four');
});

test('colours headings and states only on a terminal with colours', () => {
  const colourful = recordingTerminal({ colours: true });
  assert.match(table(colourful, { NAME: 'name' }, [{ name: 'a' }]), '<bold>NAME</bold>');
  assert.is(stateWord(colourful, 'healthy'), '<green>healthy</green>');
  assert.is(stateWord(colourful, 'unhealthy'), '<red>unhealthy</red>');
  assert.is(stateWord(colourful, 'starting'), '<yellow>starting</yellow>');
  assert.is(stateWord(plain, 'unhealthy'), 'unhealthy');
});

test('shows durations in at most two units', () => {
  const said = [0, 59.9, 60, 3599, 3600, 90_061, -5].map(duration);
  assert.equal(said, ['0 s', '59 s', '1 min', '59 min', '1 h 0 min', '1 d 1 h', '0 s']);
});

test('lets no control characters of a backend reach the terminal', () => {
  assert.is(printable('a\u001b]0;title\u0007b\nc\u001b[2Jd'), 'a ]0;title b c [2Jd');
  assert.is(printable('abc\u202efdp.exe\u2066\u200f\u2028'), 'abc fdp.exe   ');
  assert.is(printable('pay\u200bpal\u00ad\u2060\ufeff\u3164\u{e0041}.'), 'pay pal     .', 'no width');
  assert.is(
    printable('\u0645\u06cc\u200c\u062e \u2764\ufe0f \u{1f469}\u200d\u{1f4bb}'),
    '\u0645\u06cc\u200c\u062e \u2764\ufe0f \u{1f469}\u200d\u{1f4bb}',
  );
  assert.is(printable('\u001b[32mgreen\u001b[39m'), '\u001b[32mgreen\u001b[39m');
  assert.is(printable('\u001b[8mhidden\u001b[7m \u001b[31mred'), ' [8mhidden [7m  [31mred');
  const found = printable('\u001b[2mdim\u001b[39m \u001b[31mred\u001b[22m');
  assert.is(found, ' [2mdim\u001b[39m  [31mred\u001b[22m');
});

test('shows a long text of many words, on a terminal and in a pipe', () => {
  const text = 'word '.repeat(200_000).trim();
  assert.is(detailLines({ columns: undefined }, [['reason', text]]), `reason  ${text}`);
  const lines = detailLines({ columns: 80 }, [['reason', text]]).split('\n');
  assert.is(lines[0], `reason  ${'word '.repeat(14).trim()}`);
  assert.is(lines.map((line) => line.slice(8)).join(' '), text);
});

test('prints JSON that a program can read back', () => {
  assert.equal(JSON.parse(indentedJson({ a: [1, 'ü'] })), { a: [1, 'ü'] });
  const hostile = { a: 'b\u202ec\u009bd\u{1f600}\u{e0041}' };
  assert.match(indentedJson(hostile), 'b\\u202ec\\u009bd\u{1f600}\\udb40\\udc41');
  assert.equal(JSON.parse(indentedJson(hostile)), hostile);
});

test('shows a healthy instance that is ejected as ejected, with the reason', () => {
  const ejection = { reason: '5 calls in a row failed', until: '2026-01-01T00:00:05.000Z' };
  const states = [{ state: 'healthy' }, { state: 'healthy', ejection }, { state: 'unhealthy', ejection }];
  assert.equal(states.map(shownStateOf), ['healthy', 'ejected', 'unhealthy']);
  const reasons = [{ reason: null, ejection }, { reason: 'It broke.', ejection: null }, {}];
  assert.equal(reasons.map(shownReasonOf), [ejection.reason, 'It broke', '']);
});

test.run();
