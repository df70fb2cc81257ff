// With a stream in place of the keyboard. A real terminal, raw mode included, is in spec/system/journeys/accounts.spec.ts.

import { PassThrough } from 'node:stream';
import * as assert from 'uvu/assert';
import { PromptCancelled } from '../../src/cli/failures.ts';
import { askHidden } from '../../src/cli/terminal.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('hidden prompt');

test('gives back what was typed and shows the question only', async () => {
  assert.equal(await type('s3cret pässwörd 🔑\r'), ['s3cret pässwörd 🔑', 'Password: \n']);
});

test('knows backspace, arrows and the deletion of the line', async () => {
  const [backspace, left, clear] = ['\u007f', '\u001b[D', '\u0015'];
  assert.equal((await type(`abx${backspace}c\r`))[0], 'abc');
  assert.equal((await type(`ac${left}b\r`))[0], 'abc');
  assert.equal((await type(`wrong${clear}right\r`))[0], 'right');
});

test('is interrupted by Ctrl-C, on a line of its own', async () => {
  const { input, said, answer } = ask();
  input.write('half\u0003');
  assert.instance(await answer.catch((reason: unknown) => reason), PromptCancelled);
  assert.is(said(), 'Password: \n');
});

test('is undefined after Ctrl-D and the end of the input', async () => {
  assert.equal((await type('\u0004'))[0], undefined);
  const { input, said, answer } = ask();
  input.end();
  assert.equal([await answer, said()], [undefined, 'Password: \n']);
});

test('takes one line of several that are pasted', async () => {
  assert.equal((await type('one\rtwo\rthree\r'))[0], 'one');
});

test('reads an empty line as an empty answer', async () => {
  assert.equal((await type('\r'))[0], '');
});

test('sets the raw mode of a terminal while it asks, and resets it however it ends', async () => {
  for (const keys of ['secret\r', 'sec\u0003', '\u0004']) {
    const modes: boolean[] = [];
    const input = Object.assign(new PassThrough(), {
      isTTY: true,
      setRawMode: (isRaw: boolean) => void modes.push(isRaw),
    });
    const answer = askHidden('Password: ', { input, output: new PassThrough() });
    input.write(keys);
    await answer.catch(() => undefined);
    assert.equal(modes, [true, false], JSON.stringify(keys));
  }
});

test.run();

async function type(keys: string): Promise<[string | undefined, string]> {
  const { input, said, answer } = ask();
  input.write(keys);
  return [await answer, said()];
}

function ask() {
  const input = new PassThrough();
  const output: string[] = [];
  const answer = askHidden('Password: ', {
    input,
    output: { write: (text: string) => output.push(text) > 0 },
  });
  return { input, said: () => output.join(''), answer };
}
