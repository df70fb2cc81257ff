// Listing and removing connected accounts.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, serverFor } from './against-gateway.ts';

const test = suite('connection list and remove');
const gateway = gatewayFor(test, { withAccounts: true });
const serve = serverFor(test);

const connection = {
  ...{ id: 'c1', who: 'shared', user_id: null, username: null, templates: ['mail'] },
  ...{ issuer: 'https://login.example', resource: 'https://mail.example/mcp', scopes: ['read'] },
  ...{ state: 'ended', reason: 'its authorization server refuses (invalid_grant)' },
  ...{ connected_at: '2026-01-01T00:00:00.000Z', expires_at: null },
};
const env = { STAGEDOOR_API_KEY: '' }; // no gateway that could prove anything

test('list template, user and state', async () => {
  const url = await serve((_, response) => void response.end(JSON.stringify([connection])));
  const { out } = await gateway.runAt({ env }, 'connection list --url', url);
  const rows = out.split('\n').map((line) => line.trim().replace(/ {2,}/g, '|'));
  assert.equal(rows, [
    'ID|TEMPLATES|USER|STATE|SERVER|CONNECTED',
    'c1|mail|all (shared)|ended: its authorization server refuses (invalid_grant)|https://mail.example/mcp|2026-01-01 00:00Z',
  ]);
});

test('say that there is none, and remove one by its id', async () => {
  assert.is((await gateway.run('connection list')).out, 'no account is connected');
  const unknown = gateway.run('connection remove c9');
  assert.match(await complaint(unknown), 'There is no connection "c9"');
  const asked: string[] = [];
  const url = await serve((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(204).end();
  });
  const { code, out } = await gateway.runAt({ env }, 'connection remove c1 --url', url);
  assert.equal([code, out, asked], [0, 'the account c1 is disconnected', ['DELETE /gateway/connections/c1']]);
});

test('print the address of a connection that is to be made', async () => {
  const address = 'https://gateway.example/connections/abc';
  const asked: string[] = [];
  const url = await serve((request, response) => {
    request.on('data', (piece) => asked.push(`${request.method} ${request.url} ${piece}`));
    request.on('end', () => response.writeHead(201).end(JSON.stringify({ url: address })));
  });
  const { out } = await gateway.runAt({ env }, 'connection add mail mail-1 --url', url);
  assert.is(out, `open ${address} in a browser`);
  assert.equal(asked, ['POST /gateway/connections {"template":"mail","instance_id":"mail-1"}']);
  const unknown = gateway.run('connection add mail mail-1');
  assert.match(await complaint(unknown), 'No template named "mail" is registered');
});

test('confirm another authorization server', async () => {
  const issuer = 'https://new.example';
  const asked: string[] = [];
  const url = await serve((request, response) => {
    request.on('data', (piece) => asked.push(`${request.method} ${request.url} ${piece}`));
    request.on('end', () => response.end(JSON.stringify({ issuer, resource: 'https://mail.example/mcp' })));
  });
  const { out } = await gateway.runAt(
    { env },
    'connection confirm mail mail-1 --issuer',
    issuer,
    '--url',
    url,
  );
  assert.match(out, `${issuer} is used from now on`);
  assert.equal(asked, [
    `POST /gateway/connections/confirm {"template":"mail","instance_id":"mail-1","issuer":"${issuer}"}`,
  ]);
});

test.run();
