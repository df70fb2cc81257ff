// What the specs of the session need: one session below a parent that only writes down what it is told, a scripted
// backend behind it, and callers.

import { Observable } from 'rxjs';
import { type Actor, createActor, setup } from 'xstate';
import { CallReply } from '../../../src/actors/calls/call-reply.ts';
import {
  type SessionChange,
  type SessionCommand,
  type SessionLink,
  session,
} from '../../../src/actors/instances/session.ts';
import { asGatewayError, type GatewayError } from '../../../src/domain/errors.ts';
import type { ExchangeEvent } from '../../../src/domain/exchange.ts';
import type { Upstream } from '../../../src/transports/transport.ts';
import { ScriptedOpener, ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { definition, settled } from './instance-harness.ts';

/** Announces tools, so that it is asked for them. */
export const WITH_TOOLS = { capabilities: { tools: {} } };

const parentMachine = setup({
  types: {
    context: {} as { facts: SessionChange[]; opener: ScriptedOpener; now: () => number },
    events: {} as SessionChange,
  },
  actors: { session },
});

class LeasesUnderTest {
  room = 0;
  ends = 0;
  readonly #gone = Promise.withResolvers<void>();

  end(): Promise<void> {
    this.ends += 1;
    return this.#gone.promise;
  }

  gone(): void {
    this.#gone.resolve();
  }
}

/** A session, what it told, and the caller's side of it. */
export class SessionHarness {
  readonly facts: SessionChange[] = [];
  readonly opener = new ScriptedOpener();
  readonly clock = { nowMs: 0 };
  /** What single clients have there, until the spec calls `gone`. */
  readonly leases = new LeasesUnderTest();
  readonly parent: Actor<ReturnType<typeof parentMachine.createMachine>>;

  constructor() {
    const { facts, opener } = this;
    this.parent = createActor(
      parentMachine.createMachine({
        context: { facts, opener, now: () => this.clock.nowMs },
        invoke: {
          id: 'session',
          src: 'session',
          input: ({
            context: {
              opener: { open },
              now,
            },
          }) => ({ definition: definition(), open, now, leases: this.leases }),
        },
        on: { '*': { actions: ({ context, event }) => context.facts.push(event) } },
      }),
    );
    this.parent.start();
  }

  async open(transport = new ScriptedTransport()): Promise<ScriptedTransport> {
    this.opener.last.succeed(transport);
    await settled();
    return transport;
  }

  get told(): string[] {
    return this.facts.map(({ type }) => type.replace('session.', ''));
  }

  get link(): SessionLink {
    const opened = this.facts.find((fact) => fact.type === 'session.opened');
    if (opened === undefined) throw new Error('it is not open');
    return opened.link;
  }

  close(): void {
    this.#tell({ type: 'close' });
  }

  end(): void {
    this.#tell({ type: 'end' });
  }

  /** Asks over the session, or over a conversation of one client; returns what is heard, as it is heard. */
  ask(upstream?: Upstream): { heard: (string | GatewayError)[]; leave: () => void } {
    const heard: (string | GatewayError)[] = [];
    const exchange$ = new Observable<ExchangeEvent>((subscriber) => {
      const reply = new CallReply(subscriber, () => this.clock.nowMs);
      try {
        reply.follow(this.link.exchange({ method: 'tools/call' }, upstream), this.link.noteMessage);
      } catch (thrown) {
        reply.error(thrown);
      }
      return () => void reply.end();
    });
    const subscription = exchange$.subscribe({
      next: ({ kind }) => heard.push(kind),
      error: (thrown: unknown) => heard.push(asGatewayError(thrown)),
      complete: () => heard.push('completed'),
    });
    return { heard, leave: () => subscription.unsubscribe() };
  }

  #tell(command: SessionCommand): void {
    this.parent.getSnapshot().children.session?.send(command);
  }
}
