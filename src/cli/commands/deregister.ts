// `stagedoor gateway deregister`: takes an instance out of a running gateway; its calls in flight end by themselves.

import { CLIENT_OPTIONS, gatewayOf } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';

/** Row of the command table. */
export const deregister: CommandDefinition = {
  name: 'gateway deregister',
  positionals: '<template> <id>',
  summary: 'Take an instance out; calls it is working on are finished',
  options: CLIENT_OPTIONS,
  examples: ['gateway deregister search search-1'],
  run: async (input, terminal) => {
    const [template, id] = [input.positional(0), input.positional(1)];
    const gateway = await gatewayOf(input, terminal);
    const path = `/gateway/deregister/${encodeURIComponent(template)}/${encodeURIComponent(id)}`;
    await gateway.request(path, { method: 'DELETE' });
    const { json } = await import('../output.ts');
    const done = { template_name: template, instance_id: id, deregistered: true };
    terminal.print(input.switch('json') ? json(done) : `${id} is deregistered from ${template}`);
    return 0;
  },
};
