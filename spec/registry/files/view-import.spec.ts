// Views of a registry file: what is in the file is in force, and views of the API are not changed.

import * as assert from 'uvu/assert';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { parseRegistryDocument } from '../../../src/registry/files/registry-file.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('views of a registry file');
const VIEW = { title: 'Desk', from: [{ template: 'files' }] };
const read = (views: object) => parseRegistryDocument(JSON.stringify({ views }), 'registry.json');

test('are put in force, changed and removed with the file', async () => {
  await using gateway = await createGateway();
  const ids = () => gateway.views.list().map(({ definition, source }) => `${definition.id} ${source}`);
  await gateway.views.put({ id: 'own', from: [{ template: 'a' }] });
  await gateway.importFile(await read({ desk: VIEW, other: VIEW }));
  assert.equal(ids(), ['desk file', 'other file', 'own api']);
  assert.equal(gateway.views.find('desk').definition, { ...VIEW, id: 'desk' });
  const { updatedAt } = gateway.views.find('desk');
  const report = await gateway.importFile(await read({ desk: VIEW, own: VIEW }));
  assert.equal(ids(), ['desk file', 'own api']);
  assert.is(gateway.views.find('desk').updatedAt, updatedAt);
  assert.equal(report.skipped, [
    { template: 'own', name: 'view own', reason: 'the view "own" was made through the API' },
  ]);
});

test('that were deleted through the API stay deleted until their entry changes', async () => {
  await using gateway = await createGateway();
  const ids = () => gateway.views.list().map(({ definition }) => definition.id);
  await gateway.importFile(await read({ desk: VIEW, other: VIEW }));
  await gateway.views.delete('desk');
  const reason = 'it was deleted, and is added again when it changes';
  for (const again of [1, 2]) {
    const { skipped } = await gateway.importFile(await read({ desk: VIEW, other: VIEW }));
    assert.equal(
      [ids(), skipped],
      [['other'], [{ template: 'desk', name: 'view desk', reason }]],
      `${again}`,
    );
  }
  await gateway.importFile(await read({ desk: { ...VIEW, title: 'Another' }, other: VIEW }));
  assert.equal(ids(), ['desk', 'other']);
  await gateway.importFile(await read({}));
  await gateway.importFile(await read({ desk: { ...VIEW, title: 'Another' } }));
  assert.equal(ids(), ['desk'], 'what the file has lost and named again is no deletion by hand');
});

test('a wrong view is a problem with its place, and removes nothing', async () => {
  await using gateway = await createGateway();
  await gateway.importFile(await read({ desk: VIEW }));
  const wrong = await read({ desk: { ...VIEW, nonsense: 1 }, good: VIEW });
  assert.equal(wrong.problems, ['views.desk.nonsense: unknown field']);
  await gateway.importFile(wrong);
  assert.equal(
    gateway.views.list().map(({ definition }) => definition.id),
    ['desk', 'good'],
  );
});

test.run();
