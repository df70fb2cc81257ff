import * as assert from 'uvu/assert';
import { inlinePartsOf, pageHeaders } from '../../../src/http/docs/pages.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the policy of a page');

test('allows what stands in the page by its hash, and else only this gateway', () => {
  // SHA-256 of nothing and of `alert(1)`, by sha256sum and base64.
  const empty = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
  const alert = "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";
  const [name, policy = '', ...others] = pageHeaders({ scripts: ['alert(1)'], styles: [''] });
  assert.is(name, 'Content-Security-Policy');
  assert.equal(policy.split('; '), [
    "default-src 'none'",
    `script-src 'self' ${alert}`,
    `style-src 'self' ${empty}`,
    "img-src 'self' data:",
    'font-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]);
  assert.equal(others, ['Referrer-Policy', 'no-referrer', 'Cross-Origin-Opener-Policy', 'same-origin']);
});

test('finds the parts of a page, and leaves those that are files', () => {
  const html = '<style>a{}</style><script src="x"></script><script>b()\n</script><style>\nc{}</style>';
  assert.equal(inlinePartsOf(html), { scripts: ['b()\n'], styles: ['a{}', '\nc{}'] });
});

test.run();
