// The addresses on which a gateway listens, for every way to set them.

import * as assert from 'uvu/assert';
import { addresses, load, refusal, type Written } from '../helpers/config.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('listeners');

test('listens exactly on the ports that are set', () => {
  const cases: [Written, string[]][] = [
    [{ env: { GATEWAY_PORT: '9000' } }, ['0.0.0.0:9000 servers']],
    [
      { env: { MCP_GATEWAY_PORT: '9001', GATEWAY_PORT: '9000' } },
      ['0.0.0.0:9001 templates', '0.0.0.0:9000 servers'],
    ],
    [{ env: { MCP_GATEWAY_PORT: '9000', GATEWAY_PORT: '9000' } }, ['0.0.0.0:9000 templates']],
    [{ env: { MCP_GATEWAY_PORT: '0', GATEWAY_PORT: '0' } }, ['0.0.0.0:0 templates', '0.0.0.0:0 servers']],
    [
      { flags: { port: '9002' }, env: { MCP_GATEWAY_PORT: '9001', GATEWAY_PORT: '9000' }, yaml: 'port: 1' },
      ['0.0.0.0:9002 gateway'],
    ],
    [{ env: { GATEWAY_PORT: '9000' }, yaml: 'port: 9003' }, ['0.0.0.0:9000 servers']],
    [{ yaml: 'port: 9003' }, ['0.0.0.0:9003 gateway']],
    [{ flags: { port: '0' } }, ['0.0.0.0:0 gateway']],
  ];
  for (const [written, expected] of cases) assert.equal(addresses(written), expected);
});

test('applies each HOST variable to its own listener, and --host and the file to all', () => {
  const cases: [Written, string[]][] = [
    [{ env: { MCP_GATEWAY_HOST: '127.0.0.1' } }, ['127.0.0.1:8080 templates', '0.0.0.0:8000 servers']],
    [
      { env: { GATEWAY_HOST: '[::]' }, yaml: 'host: 10.0.0.1' },
      ['10.0.0.1:8080 templates', ':::8000 servers'],
    ],
    [
      { flags: { host: 'localhost' }, env: { MCP_GATEWAY_HOST: '0.0.0.0' } },
      ['localhost:8080 templates', 'localhost:8000 servers'],
    ],
    [{ flags: { port: '1' }, env: { MCP_GATEWAY_HOST: '0.0.0.0' } }, ['0.0.0.0:1 gateway']],
  ];
  for (const [written, expected] of cases) assert.equal(addresses(written), expected);
});

test('refuses --port without --host when the two HOST variables differ', () => {
  const env = { MCP_GATEWAY_HOST: '10.0.0.1', GATEWAY_HOST: '10.0.0.2' };
  assert.match(refusal({ flags: { port: '1' }, env }), 'MCP_GATEWAY_HOST and GATEWAY_HOST differ');
  assert.equal(addresses({ flags: { port: '1', host: '::1' }, env }), ['::1:1 gateway']);
});

test('warns when only one of two listeners is closed to other machines', () => {
  const open = 'port 8080 accepts connections of other machines: GATEWAY_HOST is for port 8000 only';
  const remedy = 'set MCP_GATEWAY_HOST as well, or --host for both';
  assert.equal(load({ env: { GATEWAY_HOST: '127.0.0.1' } }).warnings, [`${open}; ${remedy}`]);
  const both = { MCP_GATEWAY_HOST: '127.0.0.1', GATEWAY_HOST: 'localhost' };
  const wanted = { MCP_GATEWAY_HOST: '0.0.0.0', GATEWAY_HOST: '127.0.0.1' };
  for (const env of [
    {},
    both,
    wanted,
    { GATEWAY_HOST: '127.0.0.1', GATEWAY_PORT: '9000' },
    { GATEWAY_HOST: '10.0.0.1' },
  ])
    assert.equal(load({ env }).warnings, []);
});

test('warns of a HOST variable whose listener is not open', () => {
  const { warnings } = load({ env: { GATEWAY_PORT: '9000', MCP_GATEWAY_HOST: '0.0.0.0' } });
  assert.equal(warnings, [
    'MCP_GATEWAY_HOST has no effect: MCP_GATEWAY_PORT is not set, but another port is',
  ]);
});

test('ignores a Kubernetes service link in GATEWAY_PORT with a warning', () => {
  const { listeners, portsDefaulted, warnings } = load({ env: { GATEWAY_PORT: 'tcp://10.96.0.7:80' } });
  assert.equal([listeners.length, portsDefaulted], [2, true]);
  assert.equal(warnings, [
    'GATEWAY_PORT is ignored: it looks like a Kubernetes service link, not like a port',
  ]);
});

test.run();
