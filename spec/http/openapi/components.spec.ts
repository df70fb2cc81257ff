import * as assert from 'uvu/assert';
import { SCOPES } from '../../../src/domain/account.ts';
import { HEADERS, NAMED_SCHEMAS, SECURITY_SCHEMES } from '../../../src/http/openapi/components.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the components of the API description');

test('offer the scopes there are to whoever logs in', () => {
  const { tokenUrl, scopes } = SECURITY_SCHEMES.login.flows.password;
  assert.equal([tokenUrl, Object.keys(scopes)], ['auth/login', [...SCOPES]]);
});

test('have no two names for one schema', () => {
  const texts = Object.values(NAMED_SCHEMAS).map((schema) => JSON.stringify(schema));
  assert.is(new Set(texts).size, texts.length);
});

test('describe every header in a sentence', () => {
  for (const { description } of Object.values(HEADERS)) assert.match(description, /^[A-Z].*\.$/);
});

test.run();
