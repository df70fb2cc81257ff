import { createHash } from 'node:crypto';
import * as assert from 'uvu/assert';
import { REDOC_ASSETS, readAsset, SWAGGER_ASSETS } from '../../../src/http/docs/assets.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the files of the pages');

test('are all installed', async () => {
  for (const [name, asset] of Object.entries({ ...SWAGGER_ASSETS, ...REDOC_ASSETS })) {
    assert.ok((await readAsset(asset)).byteLength > 500, name);
  }
});

test('are taken as they are, unless something is to be replaced', async () => {
  const asset = { module: 'swagger-ui-dist/favicon-32x32.png', type: 'image/png' };
  const once = await readAsset(asset);
  assert.is(once.subarray(1, 4).toString(), 'PNG');
  assert.is(hash(once), hash(await readAsset(asset)));
});

test('of ReDoc load no picture from elsewhere and make no code of text', async () => {
  const { 'redoc.standalone.js': bundle } = REDOC_ASSETS;
  const text = String(bundle === undefined ? '' : await readAsset(bundle));
  assert.not.match(text, /cdn\.redoc\.ly/);
  assert.not.match(text, '??=Function(');
  assert.match(text, 'data:image/svg+xml,%3Csvg');
});

test('are refused when a passage is missing, or there twice', async () => {
  const asset = { module: 'swagger-ui-dist/swagger-ui.css', type: 'text/css' };
  for (const passage of ['certainly not in there', 'color']) {
    let refused: unknown;
    await readAsset({ ...asset, edits: [{ passage, by: '' }] }).catch((error: unknown) => {
      refused = error;
    });
    assert.match(String(refused), /is not the expected file/);
  }
});

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

test.run();
