// Answers whose fields have other types than those of a gateway: each command ends with a result or one line, never with a stack.

import * as assert from 'uvu/assert';
import { COMMANDS } from '../../../src/cli/commands/index.ts';
import { suite } from '../../helpers/suite.ts';
import { runCommand, serverFor } from './against-gateway.ts';

const test = suite('odd answers', { timeoutMs: 120_000 });
const serve = serverFor(test);

/** The names of the fields that commands read, and of those that have lists or records. */
const LISTS =
  'nodes sessions views tools templates instances approvals grants clients keys users entries events problems warnings bindings withheld findings lists from asks totals queue content changes reached settings added partial connections servers waiting packages remotes parameters properties required';
const FIELDS =
  'id name template template_name instance_id server_id state reason ejection address since life version draining programs in_flight title description message code remedy era status health healthy total uptime build database created_at last_used_at updated_at expires_at at time principal principal_name client username role scopes email key label weight metadata command args endpoint transport problem tokens list level kind type tool text data uri blob mimeType resource who user_id resource_owner connected_at url issuer etag latency_ms requests error_rate in_flight_calls sessions_open restarts outcome duration_ms arguments caller request_id is_active suggestion detail error_code';

const ODD = [{ toString: null, valueOf: null }, [{ toString: 1 }], '9999-99-99T99:99Z'] as const;

/** The commands that ask a gateway and end without a file, a question or a signal. */
const LINES = COMMANDS.filter(({ options }) => '--url <url>' in options)
  .flatMap(({ examples = [] }) => examples.slice(0, 2))
  .filter(
    (line) =>
      !/support\.yaml|--follow|--watch|-f |--wait|login|connect |bridge|--config|doctor|@|--json/.test(line),
  );

test('end with a result or one line', async () => {
  assert.ok(LINES.length > 35, `${LINES.length}`);
  let answer: unknown;
  const url = await serve((_, response) => void response.end(JSON.stringify(answer)));
  const faults = new Set<string>();
  for (const odd of ODD) {
    const leaf = recordOf(FIELDS, () => odd);
    const record = { ...recordOf(LISTS, () => odd), ...leaf };
    const lists = recordOf(LISTS, () => [record, odd]);
    const records = recordOf(LISTS, () => ({ one: { ...record, instances: [record] }, two: odd }));
    for (const each of [[record, odd], { ...leaf, ...lists }, { ...leaf, ...records }]) {
      answer = each;
      for (const line of [...LINES, 'doctor t', 'gateway health t']) {
        const words = line.match(/'[^']*'|\S+/g) ?? [];
        const { out, err } = await runCommand([
          ...words.map((word) => word.replaceAll("'", '')),
          '--url',
          url,
        ]);
        if (/\n {4}at /.test(out + err)) faults.add(`${line}: ${err.split('\n', 3).join(' ')}`);
      }
    }
  }
  assert.equal([...faults], []);
});

test.run();

function recordOf(names: string, valueFor: (name: string) => unknown): Record<string, unknown> {
  return Object.fromEntries(names.split(' ').map((name) => [name, valueFor(name)]));
}
