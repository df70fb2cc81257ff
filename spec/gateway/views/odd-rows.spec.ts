// A view whose row is not what this node has in memory, although the revision is the same: after a value that JSON does not have,
// or a change by hand.

import * as assert from 'uvu/assert';
import { parseRegistryDocument } from '../../../src/registry/files/registry-file.ts';
import { livesFor } from '../../helpers/stores/lives.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('rows of views', { timeoutMs: 30_000 });
const lives = livesFor(test);

test('a view of a registry file with the number -0 can be changed', async () => {
  const gateway = await lives.start();
  const importAs = async (title: string) => {
    const from = '[{ "template": "t", "defaults": { "echo": { "n": -0 } } }]';
    const text = `{ "views": { "v": { "title": "${title}", "from": ${from} } } }`;
    return gateway.importFile(await parseRegistryDocument(text, 'r.json'));
  };
  await importAs('one');
  assert.equal((await importAs('two')).skipped, []);
  assert.is(gateway.views.find('v').definition.title, 'two');
});

test.run();
