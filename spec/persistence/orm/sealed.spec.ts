// Texts that are encrypted again; how stores use them: rekey-behaviour.ts.

import * as assert from 'uvu/assert';
import { CipherError, createCipher } from '../../../src/persistence/cipher.ts';
import { opened, resealed, sealed } from '../../../src/persistence/orm/sealed.ts';
import { thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('sealed texts');
const [one, other] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
const [before, both, after] = [createCipher([one]), createCipher([other, one]), createCipher([other])];
const text = 'planted "text" ü';

test('a text of another key, or of none, is encrypted again, and one of the first key is not', () => {
  for (const column of [sealed(text, 'a', before), sealed(text, 'a', undefined)]) {
    const again = resealed(column, 'a', both) ?? '';
    assert.equal([opened(again, 'a', after), resealed(again, 'a', both)], [text, undefined]);
  }
});

test('a text that cannot be read is refused, also with the id of the first key, and its content is not told', async () => {
  const current = sealed(text, 'a', after);
  const unreadable = [sealed(text, 'a', before), `${current}AAAA`, current, '"planted', 'planted'];
  for (const column of unreadable) {
    const thrown = await thrownBy(() => resealed(column, column === current ? 'b' : 'a', after));
    assert.instance(thrown, CipherError);
    assert.not.match(String(thrown), 'planted');
  }
});

test.run();
