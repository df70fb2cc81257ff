// How a command line becomes words: what quotes and backslashes do, and that nothing a shell would do happens.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { splitCommand } from '../../src/domain/command.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('command words');

function wordsOf(text: string): readonly string[] {
  const result = splitCommand(text);
  assert.ok('words' in result, `expected words of ${text}`);
  return result.words;
}

test('splits at spaces, tabs and line breaks', () => {
  assert.equal(wordsOf('npx -y  @scope/server@1.2.3\tstdio\n'), [
    'npx',
    '-y',
    '@scope/server@1.2.3',
    'stdio',
  ]);
  assert.equal(wordsOf(''), []);
  assert.equal(wordsOf(' \t\r\n '), []);
});

test('joins quoted and plain parts into one word, and keeps empty words', () => {
  assert.equal(wordsOf(`a"b c"'d e'f`), ['ab cd ef']);
  assert.equal(wordsOf(`'' "" x`), ['', '', 'x']);
});

test('keeps everything as it is in single quotes', () => {
  assert.equal(wordsOf(String.raw`'a\b "$HOME" \\'`), [String.raw`a\b "$HOME" \\`]);
});

test('knows escaped quotes and backslashes in double quotes, and nothing else', () => {
  assert.equal(wordsOf(String.raw`"say \"hi\" \n a\\b $HOME"`), [String.raw`say "hi" \n a\b $HOME`]);
});

test('takes the meaning from a space, a quote and a backslash outside quotes', () => {
  assert.equal(wordsOf(String.raw`my\ file it\'s \" a\\b`), ['my file', "it's", '"', String.raw`a\b`]);
});

test('joins lines that end in a backslash', () => {
  assert.equal(wordsOf('npx \\\n  -y \\\r\n  server'), ['npx', '-y', 'server']);
});

test('lets Windows paths survive', () => {
  assert.equal(wordsOf(String.raw`C:\tools\run.exe --dir D:\data`), [
    String.raw`C:\tools\run.exe`,
    '--dir',
    String.raw`D:\data`,
  ]);
  assert.equal(wordsOf(String.raw`"C:\Program Files\node.exe" 'D:\data\'`), [
    String.raw`C:\Program Files\node.exe`,
    'D:\\data\\',
  ]);
  assert.equal(wordsOf(String.raw`\\server\share\a.exe "\\server\my share\b.exe"`), [
    String.raw`\\server\share\a.exe`,
    String.raw`\\server\my share\b.exe`,
  ]);
});

test('does nothing a shell would do', () => {
  const text = '$HOME `id` $(id) *.ts ~ a;b a|b a&&b >out #note';
  assert.equal(wordsOf(text), ['$HOME', '`id`', '$(id)', '*.ts', '~', 'a;b', 'a|b', 'a&&b', '>out', '#note']);
});

test('names the quote that is never closed', () => {
  assert.equal(splitCommand(`run 'it`), { problem: "the ' at character 5 is never closed" });
  assert.equal(splitCommand(String.raw`"C:\data\"`), { problem: 'the " at character 1 is never closed' });
});

test('gives back any words that were quoted the POSIX way', () => {
  const quoted = (word: string) => `'${word.replaceAll("'", String.raw`'\''`)}'`;
  const escaped = (word: string) => word.replaceAll(/[ \t'"\\]/g, String.raw`\$&`);
  const anyWord = fc.string({
    unit: fc.constantFrom('a', 'Z', '0', ' ', '\t', "'", '"', '\\', '$', 'é', '😀'),
  });
  // Escaping by hand cannot say an empty word, nor two backslashes at the start: those are a network path.
  const escapable = anyWord.filter((word) => word !== '' && !word.startsWith('\\'));
  const pair = fc.oneof(
    anyWord.map((word) => [word, quoted(word)] as const),
    escapable.map((word) => [word, escaped(word)] as const),
  );
  fc.assert(
    fc.property(fc.array(pair), (pairs) => {
      assert.equal(
        wordsOf(pairs.map(([, written]) => written).join(' ')),
        pairs.map(([word]) => word),
      );
    }),
    { numRuns: 1_000 },
  );
});

test('never throws, whatever the text', () => {
  fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (text) => void splitCommand(text)));
});

test.run();
