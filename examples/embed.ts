// A gateway inside your program: no port, no child process. The backend is a function; instances with an endpoint
// or a command are registered the same way. Run it in a clone with
//   node --conditions=stagedoor-source examples/embed.ts
// and, where the package is installed, with `node embed.ts`. It needs Node 22.18 or later.

import { createGateway, GatewayError, type InProcessHandler } from 'stagedoor';

const gateway = await createGateway({ policy: { strategy: 'least_connections', callTimeoutMs: 5_000 } });

// Events are Observables: one kind with `on`, all of them with `events$`.
gateway.on('instance.healthy').subscribe(({ template, instanceId }) => {
  console.log(`${instanceId} of ${template} is healthy`);
});
gateway.on('call.finished').subscribe(({ method, instanceId, outcome }) => {
  if (method === 'tools/call' && instanceId !== undefined)
    console.log(`${instanceId} answered with a ${outcome}`);
});

/** A backend gets MCP methods and answers with MCP results. */
const weather: InProcessHandler = ({ method, params }, { notify }) => {
  if (method === 'tools/list') return { tools: [{ name: 'forecast', inputSchema: { type: 'object' } }] };
  if (method !== 'tools/call') return {};
  const { city } = Object(params?.arguments);
  notify('notifications/message', { level: 'info', data: `looking at the sky over ${city}` });
  return { content: [{ type: 'text', text: `Rain in ${city}.` }] };
};
await gateway.register('weather', { id: 'sky', handler: weather }, { waitMs: 1_000 });

// A call, as a promise.
const { result } = await gateway.call('weather', 'forecast', { city: 'Bergen' });
console.log(JSON.stringify(result));

// The same call as an Observable: notifications come as they are sent; unsubscribing cancels it on the backend.
const request = { method: 'tools/call', params: { name: 'forecast', arguments: { city: 'Oslo' } } };
await gateway.exchange('weather', request).forEach(({ event }) => {
  if (event.kind === 'notification') console.log(`${event.method}: ${event.params.data}`);
  if (event.kind === 'result') console.log(JSON.stringify(event.result.value));
});

// Every error has a code.
try {
  await gateway.call('weather', 'earthquake');
} catch (error) {
  if (error instanceof GatewayError) console.log(`${error.code}: ${error.message}`);
}

const { healthy, total } = gateway.health('weather');
console.log(`${healthy} of ${total} healthy, ${gateway.stats().totalRequests} requests`);
await gateway.close();
