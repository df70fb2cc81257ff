// The sign-in that `connect --verify` tries, at a gateway that answers in odd ways: each ends in a line.

import * as assert from 'uvu/assert';
import { verifySignIn } from '../../../src/cli/connect/verify-sign-in.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { messageOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { serverFor } from '../commands/against-gateway.ts';

const test = suite('verification of a sign-in');
const serve = serverFor(test);
const ODD = { toString: null };

test('fails in a line', async () => {
  let odd: Readonly<Record<string, unknown>> = {};
  const url: string = await serve(({ url: path = '' }, response) => {
    if (path === '/mcp/a')
      return response
        .writeHead(401, { 'WWW-Authenticate': `Bearer resource_metadata="${url}/document"` })
        .end();
    if (path === '/broken') return response.write('{', () => response.destroy());
    if (path.startsWith('/gone')) return response.writeHead(302, { location: '//[' }).end();
    const documents: Readonly<Record<string, object>> = {
      '/document': { resource: `${url}/mcp/a`, authorization_servers: [url] },
      '/.well-known/oauth-authorization-server': {
        issuer: url,
        registration_endpoint: `${url}/register`,
        authorization_endpoint: `${url}/gone`,
      },
      '/register': { client_id: 'a' },
    };
    return response.end(JSON.stringify({ ...documents[path.replace(/\?.*/, '')], ...odd }));
  });
  const target = { transport: 'http', template: 'a', url, key: undefined, endpoint: `${url}/mcp/a` } as const;
  const cases: [typeof odd, RegExp][] = [
    [{ resource: ODD }, /is about {"toString":null}, not about/],
    [{ authorization_servers: [ODD] }, /did not answer$/],
    [{ issuer: ODD }, /names itself {"toString":null}$/],
    [{ registration_endpoint: `${url}/broken` }, /\/broken did not answer$/],
    [{ client_id: ODD }, /named no client_id$/],
    [{ authorization_endpoint: '//[' }, /named no address as authorization_endpoint$/],
    [{}, /leads to "\/\/\[", which is not an address$/],
  ];
  for (const [answer, reason] of cases) {
    odd = answer;
    assert.match(await messageOf(verifySignIn(target, undefined), CommandFailure), reason);
  }
});

test.run();
