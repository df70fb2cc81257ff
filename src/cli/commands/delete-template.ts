// `stagedoor gateway delete-template`: takes a template without instances out of the lists of a running gateway, with its settings.

import { CLIENT_OPTIONS, gatewayOf } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';

/** Row of the command table. */
export const deleteTemplate: CommandDefinition = {
  name: 'gateway delete-template',
  positionals: '<template>',
  summary: 'Delete a template that has no instances any more, together with its settings',
  options: CLIENT_OPTIONS,
  examples: ['gateway delete-template search'],
  run: async (input, terminal) => {
    const template = input.positional(0);
    const gateway = await gatewayOf(input, terminal);
    await gateway.request(`/gateway/templates/${encodeURIComponent(template)}`, { method: 'DELETE' });
    const { json } = await import('../output.ts');
    const done = { template_name: template, deleted: true };
    terminal.print(input.switch('json') ? json(done) : `${template} is deleted`);
    return 0;
  },
};
