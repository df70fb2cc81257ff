// `stagedoor gateway health`: one word for scripts and monitors, or the health of the instances of a template.

import { fields, reasonOf, stateOf } from '../answers.ts';
import { CLIENT_OPTIONS, gatewayOf } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { ofTemplate } from '../nearest-template.ts';

/** Row of the command table. The health of the gateway needs no account. */
export const health: CommandDefinition = {
  name: 'gateway health',
  positionals: '[template]',
  summary:
    'Show the health of the gateway, or of a template and its instances; exit code 1 when it is unhealthy or not running',
  options: CLIENT_OPTIONS,
  examples: ['gateway health', 'gateway health everything', 'gateway health --json'],
  run: async (input, terminal) => {
    const { duration, facts, json, stateWord, table } = await import('../output.ts');
    const [template] = input.positionals;
    const gateway = await gatewayOf(input, terminal);
    const seen = fields(
      template === undefined
        ? await gateway.look('/gateway/health')
        : await ofTemplate(gateway, template, () =>
            gateway.request(`/mcp/${encodeURIComponent(template)}/health`),
          ),
    );
    const isUnhealthy = seen.status === 'unhealthy';
    if (input.switch('json')) terminal.print(json(seen));
    else if (template === undefined) {
      const instances = fields(seen.instances);
      terminal.print(
        facts([
          ['status', stateWord(terminal, String(seen.status))],
          ['database', String(seen.database)],
          ['instances', `${instances.healthy} of ${instances.total} healthy`],
          ['uptime', duration(Number(seen.uptime))],
        ]),
      );
    } else {
      const rows = Object.entries(fields(seen.instances)).map(([id, instance]) => {
        const record = fields(instance);
        const latency = typeof record.latency_ms === 'number' ? `${record.latency_ms} ms` : '';
        return [id, stateWord(terminal, stateOf(record)), latency, reasonOf(record)];
      });
      const { healthy_instances: healthy, total_instances: total } = seen;
      terminal.print(`${template}: ${healthy} of ${total} healthy`);
      if (rows.length > 0) terminal.print(table(terminal, ['INSTANCE', 'STATE', 'LATENCY', 'REASON'], rows));
    }
    return isUnhealthy ? 1 : 0;
  },
};
