// `stagedoor gateway start` runs a gateway until a signal stops it, in the foreground or as a daemon;
// `gateway stop` ends a daemon, and `gateway restart` starts it again.

import { existsSync } from 'node:fs';
import type { Config, ConfigRow } from '../../../config/config.ts';
import { SETTINGS } from '../../../config/settings.ts';
import { systemClock } from '../../../domain/time/clock.ts';
import { DAEMON_OPTIONS, DAEMON_VARIABLE, NODE_ID_VARIABLE } from '../../background/daemon-files.ts';
import { type Command, JSON_OPTION } from '../../command.ts';
import { readCommandLine } from '../../command-line.ts';
import { CommandFailure, UsageError } from '../../failures.ts';
import { releaseCompiledCode } from '../../foreground/compiled-code.ts';
import { indentedJson, printResult } from '../../output.ts';
import { readSettings, SETTING_OPTIONS } from '../../setting-options.ts';
import type { Terminal } from '../../terminal.ts';
import { WORKER_VARIABLE } from '../../workers/messages.ts';

export const gatewayStart: Command = {
  name: 'gateway start',
  summary: 'Start a gateway; runs until Ctrl-C or SIGTERM, then finishes the calls in flight',
  options: {
    '--demo':
      'Start with real MCP servers and show calls to try; on the loopback address unless --host says otherwise',
    ...SETTING_OPTIONS,
    '--background':
      'Run detached from the terminal; return when the gateway is ready. See "gateway stop" and "gateway logs"',
  },
  examples: [
    'gateway start --demo',
    'gateway start --port 9000 --registry-file servers.json',
    'gateway start --config gateway.yaml --log-level warn',
    'gateway start --background',
    'gateway start --workers auto',
    'gateway start --sync',
    'gateway start --database sqlite:///data/gateway.db',
    'gateway start --host 127.0.0.1 --no-auth',
  ],
  run: async (input, terminal) => {
    const isDemo = input.has('demo');
    // The demo runs programs for every caller, so it stays on this machine unless --host says otherwise.
    const settings = (): Config => readSettings(input, terminal, isDemo ? { host: '127.0.0.1' } : {});
    if (terminal.env[WORKER_VARIABLE] !== undefined) return startWorker(settings, terminal);
    const config = settings();
    input.refuseBoth('demo', 'background');
    if (input.has('background')) {
      const { startDaemon } = await import('../../background/start-daemon.ts');
      const words = process.argv.slice(2).filter((word) => !/^--background(=|$)/.test(word));
      return startDaemon(config, words, terminal);
    }
    if (terminal.env[DAEMON_VARIABLE] !== undefined) {
      const { runDaemon } = await import('../../background/run-daemon.ts');
      return runDaemon(config, terminal);
    }
    const count = config.workers === 1 ? 1 : await workersOf(isDemo ? demoConfig(config) : config);
    if (count > 1) {
      const { runSupervisor } = await import('../../workers/supervisor.ts');
      return runSupervisor(config, { count, terminal });
    }
    const effective = isDemo ? demoConfig(config) : config;
    const { beginFirstPassword } = await import('../../../auth/accounts/first-password.ts');
    const { Passwords } = await import('../../../auth/accounts/passwords.ts');
    const firstPassword = beginFirstPassword(effective, new Passwords(systemClock));
    // Most of the program. Meanwhile another thread hashes that password.
    const { runGateway } = await import('../../foreground/run-gateway.ts');
    // Before the database library is loaded, so that its code reuses the released memory.
    releaseCompiledCode();
    return runGateway(effective, { isDemo, terminal, firstPassword });
  },
};

async function startWorker(settings: () => Config, terminal: Terminal): Promise<number> {
  try {
    const { runWorker } = await import('../../workers/run-worker.ts');
    releaseCompiledCode();
    return await runWorker(settings, terminal);
  } finally {
    // The channel to its supervisor would keep a process that has ended, or could not begin.
    if (process.connected) process.disconnect();
  }
}

async function workersOf(config: Config): Promise<number> {
  return (await import('../../workers/worker-count.ts')).workerCount(config);
}

/** A demo stores nothing: no later start could run its servers. It prints their state, so its default log level is `warn`. */
function demoConfig(config: Config): Config {
  const isDatabase = ({ setting }: ConfigRow) => setting === SETTINGS.databaseUrl;
  const source = config.rows.find(isDatabase)?.source;
  if (source !== 'default' && config.databaseUrl !== 'memory://') {
    throw new UsageError(`--demo cannot be combined with a database (${source}): a demo keeps nothing`);
  }
  const rows = config.rows.map((row) => (isDatabase(row) ? { ...row, value: 'memory://' } : row));
  const level = rows.find(({ setting }) => setting === SETTINGS.logLevel);
  const logLevel = level?.sourceKind === 'default' ? 'warn' : config.logLevel;
  return { ...config, databaseUrl: 'memory://', logLevel, rows };
}

export const gatewayStop: Command = {
  name: 'gateway stop',
  summary: 'Stop the gateway in the background, when its calls in flight have ended',
  options: { ...DAEMON_OPTIONS, ...JSON_OPTION },
  examples: ['gateway stop', 'gateway stop --state-dir /var/lib/stagedoor'],
  run: async (input, terminal) => {
    const { requireDaemon, stopDaemon } = await import('../../background/start-daemon.ts');
    const daemon = await requireDaemon(input, terminal);
    await stopDaemon(daemon, terminal);
    const { pid, url } = daemon;
    return printResult(input, terminal, { pid, url, stopped: true }, `stopped: process ${pid}, ${url}`);
  },
};

export const gatewayRestart: Command = {
  name: 'gateway restart',
  summary: 'Restart the gateway in the background with the options that it was started with',
  options: { ...DAEMON_OPTIONS, ...JSON_OPTION },
  examples: ['gateway restart', 'gateway restart --state-dir /var/lib/stagedoor'],
  run: async (input, terminal) => {
    const { requireDaemon, requireSpace, startDaemon, stopDaemon } = await import(
      '../../background/start-daemon.ts'
    );
    const daemon = await requireDaemon(input, terminal);
    const { folder, words } = daemon;
    if (!existsSync(folder))
      throw new CommandFailure(`the gateway keeps running: its folder ${folder} is gone`);
    // Invalid settings are reported before anything is stopped.
    const line = readCommandLine([gatewayStart], words);
    if (line.kind !== 'run') throw new CommandFailure(`"${words.join(' ')}" does not start a gateway`);
    // The gateway starts as the same node, also from a shell that does not have the name of the node.
    const nodeId = terminal.env[NODE_ID_VARIABLE] || daemon.nodeId;
    const env = nodeId === undefined ? terminal.env : { ...terminal.env, [NODE_ID_VARIABLE]: nodeId };
    const there = { ...terminal, folder, env };
    const config = readSettings(line.input, there);
    await requireSpace(config, there);
    await stopDaemon(daemon, terminal);
    if (!input.has('json')) return startDaemon(config, words, there);
    await startDaemon(config, words, { ...there, print: terminal.note });
    const { pid, url } = await requireDaemon(input, terminal);
    terminal.print(indentedJson({ pid, url }));
    return 0;
  },
};
