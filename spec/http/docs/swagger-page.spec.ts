import * as assert from 'uvu/assert';
import { SWAGGER_ASSETS } from '../../../src/http/docs/assets.ts';
import { swaggerPage } from '../../../src/http/docs/pages.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the page of Swagger UI');

test('loads nothing but the files that are served beside it', async () => {
  const { html } = await swaggerPage();
  const loaded = [...html.matchAll(/\s(?:src|href)="([^"]*)"/g)].map(([, url]) => url);
  assert.equal(
    loaded.sort(),
    Object.keys(SWAGGER_ASSETS)
      .map((name) => `docs/assets/${name}`)
      .sort(),
  );
  assert.not.match(html, /https?:\/\/(?!www\.w3\.org)/);
});

test('asks nobody whether the description is valid', async () => {
  const { html } = await swaggerPage();
  assert.match(html, /"url":"openapi\.json","validatorUrl":null/);
});

test('allows its script by a hash', async () => {
  const { html, headers } = await swaggerPage();
  const policy = headers[headers.indexOf('Content-Security-Policy') + 1] ?? '';
  assert.not.match(policy, 'unsafe');
  assert.is(policy.match(/script-src 'self' 'sha256-/g)?.length, 1);
  assert.not.match(html, /\sstyle="|\son\w+="/);
});

test('is the same each time', async () => {
  assert.equal(await swaggerPage(), await swaggerPage());
});

test.run();
