// Which texts are placeholders, and what they become.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders are what this is about

import * as assert from 'uvu/assert';
import { fillPlaceholders, unknownPlaceholders } from '../../src/templates/definition.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('placeholders');

test('fills the scratch folder wherever it stands, whatever its path', () => {
  const filled = fillPlaceholders('${SCRATCH}/a:${SCRATCH}', { SCRATCH: 'C:\\$& my $1' });
  assert.is(filled, 'C:\\$& my $1/a:C:\\$& my $1');
});

test('leaves everything else as it is', () => {
  const text = '$SCRATCH ${scratch} ${OTHER} {SCRATCH} $${}';
  assert.is(fillPlaceholders(text, { SCRATCH: '/x' }), text);
});

test('knows which it does not know', () => {
  assert.equal(unknownPlaceholders('${SCRATCH} ${OTHER} ${lower} ${A_1}'), ['${OTHER}', '${A_1}']);
});

test.run();
