// Which texts name a resource of this gateway, and what a token for a resource opens.

import * as assert from 'uvu/assert';
import type { ResourcePath } from '../../../src/domain/accounts/account.ts';
import { GatewayAddress, opens } from '../../../src/domain/accounts/resource.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('resources');

const here = new GatewayAddress(undefined, () => [8080, 8000]);
const there = new GatewayAddress('https://gateway.example', () => [8080]);

test('has the public address as issuer, else the loopback address of the first port', () => {
  assert.is(there.issuer, 'https://gateway.example');
  assert.is(here.issuer, 'http://127.0.0.1:8080');
  assert.equal([there.isPublic, here.isPublic], [true, false]);
});

test('answers by the name of the request on this machine, and always by the public address if there is one', () => {
  const hosts = ['localhost:8000', '[::1]:8080', 'LOCALHOST:8080', 'localhost:9999', 'evil.example:8080'];
  assert.equal(
    [...hosts, undefined].map((host) => here.baseFor(host)),
    ['http://localhost:8000', 'http://[::1]:8080', 'http://localhost:8080', undefined, undefined, undefined],
  );
  assert.equal([...new Set([...hosts, undefined].map((host) => there.baseFor(host)))], [there.issuer]);
});

test('normalises the host, the default port and a final slash of a resource', () => {
  const same = [
    ...['https://gateway.example/mcp', 'https://gateway.example/mcp/', 'HTTPS://Gateway.Example/mcp'],
    'https://gateway.example:443/mcp',
  ];
  for (const resource of same) assert.is(there.normalise(resource), 'https://gateway.example/mcp');
  assert.is(there.normalise('https://gateway.example/'), 'https://gateway.example');
  assert.is(there.pathOf('https://gateway.example'), '');
  assert.is(there.pathOf('https://gateway.example/mcp/files'), '/mcp/files');
  assert.is(here.pathOf('http://localhost:8000/mcp/files/'), '/mcp/files');
});

test('takes no text that could mean another resource or gateway', () => {
  const foreign = [
    ...['', 'gateway.example', 'http://gateway.example/mcp', 'https://gateway.example:8443/mcp'],
    ...[
      'https://gateway.example.evil.example/mcp',
      'https://evil.example/mcp',
      'https://gateway.example/Mcp',
    ],
    ...['https://me@gateway.example/mcp', 'https://gateway.example@evil.example/mcp'],
    ...['https://gateway.example/mcp?x=1', 'https://gateway.example/mcp#x', 'https://gateway.example/mcp?'],
    ...['https://gateway.example/mcp//', 'https://gateway.example//mcp', 'https://gateway.example/mcp/a/b'],
    ...[
      'https://gateway.example/mcp/a/../b',
      'https://gateway.example/mcp/%61',
      'https://gateway.example\\mcp',
    ],
    ...['https://gateway.example/mcp/A', 'https://gateway.example/gateway', 'http://127.0.0.1:8080/mcp'],
    `https://gateway.example/mcp/${'a'.repeat(129)}`,
  ];
  for (const resource of foreign) assert.is(there.pathOf(resource), undefined, resource);
  const elsewhere = ['https://localhost:8080/mcp', 'http://localhost:8081/mcp', 'http://localhost/mcp'];
  for (const resource of elsewhere) assert.is(here.pathOf(resource), undefined, resource);
});

test('opens with a token for a resource only that one, and everything with one for the gateway', () => {
  const resources: ResourcePath[] = ['', '/mcp', '/mcp/files', '/mcp/other'];
  const opened = (audience: ResourcePath) => resources.filter((resource) => opens(audience, resource));
  assert.equal(opened(''), resources);
  assert.equal(opened('/mcp'), ['/mcp']);
  assert.equal(opened('/mcp/files'), ['/mcp/files']);
});

test.run();
