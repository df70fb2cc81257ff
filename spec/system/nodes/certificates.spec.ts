// Nodes that reach each other with certificates of the operator (cluster.tls): real gateways on one PostgreSQL.

import * as assert from 'uvu/assert';
import { startEverything } from '../../fixtures/everything-server.ts';
import type { Json } from '../../fixtures/wire.ts';
import { newKey } from '../../helpers/clients/caller.ts';
import { LegacyClient, requestText } from '../../helpers/clients/mcp-client.ts';
import { becomes } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { hasOpenssl, issueCertificate, makeAuthority } from '../../helpers/network/certificates.ts';
import { register } from '../../helpers/programs/mcp-program.ts';
import { freshDatabase, postgresql } from '../../helpers/services/services.ts';
import { suite } from '../../helpers/suite.ts';
import { capabilities, heardWithinMs, isServed, type McpNode, startNode } from './mcp-nodes.ts';

const server = await postgresql();
const test = suite('journey: certificates between nodes', { timeoutMs: 240_000 });
const onPostgresql = test.needs(
  server.url !== undefined && hasOpenssl(),
  server.url === undefined ? server.skip : 'no openssl here',
);
const folder = folderOfEach(test);
const opened: (() => unknown)[] = [];
test.after.each(async () => {
  for (const close of opened.splice(0)) await close();
});

onPostgresql(
  'a session is served at another node, and a node with another authority reaches none',
  async () => {
    assert.ok(server.url);
    const database = await freshDatabase(server);
    opened.unshift(database.drop);
    for (const name of ['ca', 'other']) makeAuthority(folder(), name);
    const start = async (id: string, authority: string): Promise<McpNode> => {
      issueCertificate(folder(), authority, id);
      const env = {
        GATEWAY_CLUSTER_TLS_CERT: folder(`${id}.crt`),
        GATEWAY_CLUSTER_TLS_KEY: folder(`${id}.key`),
        GATEWAY_CLUSTER_TLS_CA: folder('ca.crt'),
      };
      const node = await startNode(database, { id, env });
      opened.unshift(node.remove);
      return node;
    };
    const [a, b] = [await start('a', 'ca'), await start('b', 'ca')];
    const addresses = async () => {
      const { body } = await a.admin('GET /gateway/nodes');
      const nodes: Json[] = Object(body).nodes; // the others in any order
      return nodes.map(({ state, address }) => `${state} ${String(address).split(':')[0]}`).sort();
    };
    await becomes(addresses, ['live https', 'live https'], heardWithinMs);
    const { headers } = await newKey(a.admin, 'clients');
    const options = { capabilities, headers };
    const backend = await startEverything({ era: 'legacy' });
    opened.push(() => backend.close());
    await register(a.admin, 'legacy', [{ id: 'one', endpoint: backend.url }]);
    await isServed(b, '/mcp/legacy', options);
    const client = await LegacyClient.open(a.wire, '/mcp/legacy', options);
    const body = requestText(1, 'tools/list');
    assert.is((await b.wire.exchange('/mcp/legacy', { headers: client.headers, body })).status, 200);

    const stranger = await start('stranger', 'other');
    await isServed(stranger, '/mcp/legacy', options);
    const refused = await stranger.wire.exchange('/mcp/legacy', { headers: client.headers, body });
    assert.is(refused.status, 503);
    assert.equal(await addresses(), ['live https', 'live https', 'silent https'], 'it has ended no life');
    const audited = async () => {
      const { body: log } = await a.admin('GET /gateway/audit');
      return JSON.stringify(log).includes('peer channel: failed handshake');
    };
    await becomes(audited, true, heardWithinMs);
  },
);

test.run();
