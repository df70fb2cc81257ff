import * as assert from 'uvu/assert';
import { redocPage } from '../../../src/http/docs/pages.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the page of ReDoc');

test('loads its bundle and the description, and tells nobody', () => {
  const { html } = redocPage();
  assert.match(html, /<script type="module" src="redoc\/assets\/redoc\.standalone\.js">/);
  assert.match(html, /spec-url="openapi\.json" disable-telemetry="true"/);
  assert.not.match(html, /https?:/);
});

test('allows no script but files, and no style but its own and empty ones', () => {
  const { headers } = redocPage();
  const policy = headers[headers.indexOf('Content-Security-Policy') + 1] ?? '';
  assert.match(policy, /script-src 'self';/);
  assert.match(
    policy,
    /style-src 'self' 'sha256-[^ ]+' 'sha256-47DEQpj8HBSa\+\/TImW\+5JCeuQeRkm5NMpJWZG3hSuFU=';/,
  );
  assert.not.match(policy, 'unsafe');
});

test.run();
