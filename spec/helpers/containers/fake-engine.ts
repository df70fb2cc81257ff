// A fake container engine with what sync uses: lists, details and events of made-up containers, over a Unix socket.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A container; running by default. */
export interface FakeContainer {
  /** The start of the id, which is padded with zeros. */
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly state?: Readonly<Record<string, unknown>>;
  /** Container ports and their published addresses; null: exposed but not published. */
  readonly ports?: Readonly<Record<string, { readonly HostIp: string; readonly HostPort: string } | null>>;
  readonly address?: string;
  readonly network?: string;
}

export type FakeEngine = Awaited<ReturnType<typeof startFakeEngine>>;

export async function startFakeEngine(containers: FakeContainer[] = []) {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-engine-'));
  const socket = join(folder, 'engine.sock');
  const streams = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://engine');
    const json = (body: unknown, status = 200) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (url.pathname === '/events') {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.flushHeaders();
      streams.add(response);
      response.on('close', () => streams.delete(response));
      server.emit('followed');
      return;
    }
    if (url.pathname === '/containers/json') {
      const [label = ''] = Object(JSON.parse(url.searchParams.get('filters') ?? '{}')).label ?? [];
      const [name = '', value] = label.split('=');
      const wanted = ({ labels }: FakeContainer) =>
        name in labels && (value ?? labels[name]) === labels[name];
      return json(
        engine.containers.filter(wanted).map(({ id, labels }) => ({ Id: whole(id), Labels: labels })),
      );
    }
    const [, id] = /^\/containers\/(\w+)\/json$/.exec(url.pathname) ?? [];
    const found = engine.containers.find((one) => whole(one.id) === id);
    return found === undefined ? json({ message: 'no such container' }, 404) : json(detailsOf(found));
  });
  await once(server.listen(socket), 'listening');
  const engine = {
    /** Value for DOCKER_HOST. */
    address: `unix://${socket}`,
    /** The containers; may be changed. */
    containers,
    /** Sends an event to all open event streams. */
    emit: (action: string, id: string) => {
      const line = JSON.stringify({ Type: 'container', Action: action, Actor: { ID: whole(id) } });
      for (const stream of streams) stream.write(`${line}\n`);
    },
    /** Resolves when an event stream is open. */
    followed: async () => {
      if (streams.size === 0) await once(server, 'followed');
    },
    /** Ends all open event streams. */
    cutEvents: () => {
      for (const stream of streams) stream.destroy();
    },
    close: async () => {
      server.closeAllConnections();
      if (server.listening) await once(server.close(), 'close');
      await rm(folder, { recursive: true, force: true });
    },
  };
  return engine;
}

/** An id of 64 digits. */
function whole(id: string): string {
  return id.padEnd(64, '0');
}

function detailsOf({ id, labels, state, ports = {}, address = '', network = 'bridge' }: FakeContainer) {
  const published = Object.entries(ports).map(([port, binding]) => [
    port,
    binding === null ? null : [binding],
  ]);
  return {
    Id: whole(id),
    Name: `/name-${id}`,
    Config: { Labels: labels },
    HostConfig: { NetworkMode: network },
    State: { Running: true, Paused: false, ...state },
    NetworkSettings: {
      Ports: Object.fromEntries(published),
      Networks: { [network]: { IPAddress: address } },
    },
  };
}
