// The plainest load balancer: each request goes to the next of several servers, whatever session it belongs to.

import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';

export interface RoundRobin {
  readonly url: string;
  close(): void;
}

export async function startRoundRobin(urls: readonly string[]): Promise<RoundRobin> {
  const agent = new Agent({ keepAlive: true });
  let next = 0;
  const server = createServer((incoming, response) => {
    const { method, headers, url: path } = incoming;
    const target = urls[next % urls.length];
    next += 1;
    const outgoing = request(`${target}${path}`, { agent, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      agent.destroy();
      server.close();
      server.closeAllConnections();
    },
  };
}
