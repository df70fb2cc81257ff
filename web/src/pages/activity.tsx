// Calls as they arrive, each with its outcome and, when opened, its attempts.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { account } from '../account.ts';
import type { Attempt, Call } from '../calls.ts';
import { clock, milliseconds, plural } from '../format.ts';
import { Cell } from '../parts/cell.tsx';
import { DetailRow } from '../parts/detail-row.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { isNarrow } from '../parts/screen.ts';
import { Badge } from '../parts/state.tsx';
import { Empty } from '../parts/status.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { route, setParams } from '../router.ts';
import { calls, watchCalls } from '../store.ts';

const OUTCOMES = ['All outcomes', 'Running', 'Failed'] as const;

export function ActivityPage() {
  const outcome = useSignal<string>(OUTCOMES[0]);
  const { params } = route.value;
  useEffect(() => {
    watchCalls(true);
    return () => watchCalls(false);
  }, []);
  const wanted = (params.get('filter') ?? '').toLowerCase();
  const all = calls.shown.value;
  const shown = all.filter((call) => isWanted(call, wanted, outcome.value));
  const open = all.find(({ key }) => key === params.get('call'));
  const isPaused = calls.isPaused.value;
  return (
    <>
      <div class="title">
        <h1>Activity</h1>
        <div class="actions">
          <input
            type="search"
            aria-label="Filter calls"
            placeholder="Tool, template, caller, instance"
            defaultValue={wanted}
            onInput={(event) => setParams({ filter: event.currentTarget.value })}
          />
          <select
            aria-label="Outcome"
            onChange={(event) => {
              outcome.value = event.currentTarget.value;
            }}
          >
            {OUTCOMES.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
          <button type="button" onClick={() => calls.pause(!isPaused)}>
            {isPaused ? 'Resume' : 'Pause'}
          </button>
        </div>
      </div>
      {calls.missed.value > 0 && (
        <p class="callout warn">
          {plural(calls.missed.value, 'event')} came faster than this page could read.
        </p>
      )}
      {shown.length === 0 ? (
        <Empty title={all.length === 0 ? 'No call yet.' : 'No call matches.'}>
          <p>Calls appear here while they run, with each attempt. Arguments and results are never shown.</p>
        </Empty>
      ) : (
        <CallTable items={shown} />
      )}
      {open && <CallDrawer call={open} />}
    </>
  );
}

function CallTable({ items }: { readonly items: readonly Call[] }) {
  return (
    <div class="panel table calls">
      <div class="head" aria-hidden="true">
        <span>Time</span>
        <span>Call</span>
        <span>Template</span>
        <span>Caller</span>
        <span>Outcome</span>
        <span class="number">Attempts</span>
        <span class="number">Duration</span>
      </div>
      <VirtualList
        items={items}
        keyOf={({ key }) => key}
        rowHeight={isNarrow.value ? 84 : 46}
        label="Calls, newest first"
      >
        {(call) => <CallRow call={call} />}
      </VirtualList>
    </div>
  );
}

function isWanted(call: Call, text: string, outcome: string): boolean {
  const { tool, method, template, principal, requestId, code, attempts } = call;
  if (outcome === 'Running' && call.outcome !== 'running') return false;
  if (outcome === 'Failed' && (call.outcome === 'running' || call.outcome === 'result')) return false;
  if (text === '') return true;
  const words = [
    tool,
    method,
    template,
    principal,
    requestId,
    code,
    ...attempts.map(({ instance }) => instance),
  ];
  return words.some((word) => word?.toLowerCase().includes(text));
}

function CallRow({ call }: { readonly call: Call }) {
  return (
    <div class="row">
      <span class="number cell-time">{clock(call.at)}</span>
      <button type="button" class="link cut" onClick={() => setParams({ call: call.key })}>
        {call.tool ?? call.method}
      </button>
      <span class="cut">{call.template}</span>
      <span class="cut cell-caller">{callerOf(call)}</span>
      <Outcome {...call} />
      <Cell name="attempts">{call.attempts.length}</Cell>
      <Cell name="duration">{milliseconds(call.durationMs)}</Cell>
    </div>
  );
}

/** The name of the account that is signed in; of others the event has the id. */
function callerOf({ principal }: Call): string {
  const own = account.value;
  return own && own.id === principal ? own.name : principal;
}

/** The meanings of the codes of calls; docs/reference/errors.md has all. */
const MEANINGS: Readonly<Record<string, string>> = {
  NO_HEALTHY_INSTANCE: 'No instance of the template could take the call.',
  BACKEND_UNAVAILABLE: 'The server refused the call or could not be reached.',
  BACKEND_TIMEOUT: 'The server did not answer in time.',
  QUEUE_FULL: 'A queue of calls, or another limit of the gateway, was full.',
  TOOL_NOT_FOUND: 'No instance has a tool with this name.',
  INVALID_TOOL_ARGUMENTS: 'The arguments do not fit the schema of the tool.',
  TOOL_EXECUTION_FAILED: 'The server answered with an error.',
  SHUTTING_DOWN: 'The gateway was being stopped.',
};

function messageOf({ outcome, code }: Call): string | undefined {
  if (outcome === 'tool_error') return 'The tool ran and reported an error.';
  if (outcome === 'error') return 'The server answered with a JSON-RPC error.';
  if (outcome === 'cancelled') return 'The caller disconnected before the answer.';
  return code === undefined ? undefined : MEANINGS[code];
}

function Outcome({ outcome, code }: Pick<Call, 'outcome' | 'code'>) {
  if (outcome === 'result') return <Badge tone="ok" icon="healthy" word="Result" />;
  if (outcome === 'running') return <Badge tone="idle" icon="starting" word="Running" />;
  if (outcome === 'tool_error') return <Badge tone="bad" icon="bad" word="Tool error" />;
  if (outcome === 'cancelled') return <Badge tone="idle" icon="stopped" word="Cancelled" />;
  return <Badge tone="bad" icon="bad" word={code ?? outcome} />;
}

function CallDrawer({ call }: { readonly call: Call }) {
  const { tool, method, template, requestId, attempts, durationMs } = call;
  const message = messageOf(call);
  return (
    <Dialog title={tool ?? method} onClose={() => setParams({ call: undefined })} isDrawer>
      <div class="actions">
        <Outcome {...call} />
      </div>
      {message !== undefined && <p>{message}</p>}
      <dl class="details">
        <DetailRow name="Method">{method}</DetailRow>
        <DetailRow name="Template">{template}</DetailRow>
        <DetailRow name="Caller">{callerOf(call)}</DetailRow>
        <DetailRow name="Arrived">{clock(call.at)}</DetailRow>
        <DetailRow name="Duration">{milliseconds(durationMs)}</DetailRow>
        {requestId !== undefined && <DetailRow name="Request">{requestId}</DetailRow>}
      </dl>
      <section>
        <h3>{plural(attempts.length, 'attempt')}</h3>
        {attempts.length === 0 && <p class="muted">No instance has answered it yet.</p>}
        <ol class="stack">
          {attempts.map((attempt) => (
            <AttemptView key={attempt.at + attempt.instance} attempt={attempt} call={call} />
          ))}
        </ol>
      </section>
    </Dialog>
  );
}

/** One attempt, in words, with its position in the time of the call. */
function AttemptView({ attempt, call }: { readonly attempt: Attempt; readonly call: Call }) {
  const { instance, waitMs = 0, durationMs } = attempt;
  const total = Math.max(1, call.durationMs ?? 0, waitMs + durationMs);
  const share = (ms: number): string => `${(ms / total) * 100}%`;
  return (
    <li class="attempt">
      <div class="title">
        <span class="strong">{instance}</span>
        <Outcome {...attempt} />
      </div>
      <div class="timeline" aria-hidden="true">
        <span class="waited" style={{ width: share(waitMs) }} />
        <span class="worked" style={{ width: share(durationMs) }} />
      </div>
      <p class="small muted">
        Sent after {milliseconds(waitMs)}, ended after {milliseconds(durationMs)} more.
      </p>
    </li>
  );
}
