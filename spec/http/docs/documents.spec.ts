import * as assert from 'uvu/assert';
import { createDocuments } from '../../../src/http/docs/documents.ts';
import { openApiDocument } from '../../../src/http/openapi/document.ts';
import type { Reply } from '../../../src/http/reply.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the documents of an app');

const etagOf = (reply: Reply): string => {
  const { headers = [] } = 'status' in reply ? reply : {};
  return headers[headers.indexOf('ETag') + 1] ?? '';
};

test('are made once', async () => {
  const documents = createDocuments(async () => openApiDocument(ROUTES));
  const [one, two] = await Promise.all([documents.description(undefined), documents.description(undefined)]);
  assert.ok(one.kind === 'bytes' && two.kind === 'bytes' && one.bytes === two.bytes);
});

test('are not sent again to whoever has them', async () => {
  const documents = createDocuments(async () => openApiDocument(ROUTES));
  const etag = etagOf(await documents.page('redoc', undefined));
  assert.match(etag, /^"[\w-]{22}"$/);
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const { kind, status } = await documents.page('redoc', known);
    assert.equal([kind, status], ['empty', 304], known);
  }
  assert.is((await documents.page('redoc', '"other"')).status, 200);
});

test('are told apart by their tags', async () => {
  const documents = createDocuments(async () => openApiDocument(ROUTES));
  const tags = await Promise.all([
    documents.description(undefined).then(etagOf),
    documents.page('docs', undefined).then(etagOf),
    documents.page('redoc', undefined).then(etagOf),
    documents.asset('docs', 'swagger-ui.min.css', undefined).then(etagOf),
  ]);
  assert.is(new Set(tags).size, 4);
  assert.not.equal(
    etagOf(await createDocuments(async () => openApiDocument(ROUTES.slice(1))).description(undefined)),
    tags[0],
  );
});

test('never make a path of a name', async () => {
  const documents = createDocuments(async () => openApiDocument(ROUTES));
  for (const name of ['../../../package.json', 'index.html', 'toString', '']) {
    const refused = await documents.asset('docs', name, undefined).catch(String);
    assert.match(String(refused), 'is not in the list of files');
  }
});

test.run();
