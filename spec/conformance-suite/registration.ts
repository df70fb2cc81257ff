// Instances come and go through the API of the gateway under test, as a user's would.

const answerMs = 30_000;

/** Registers an instance; resolves once it is healthy, which may take so many seconds. */
export async function register(
  gateway: string,
  template: string,
  instance: object,
  withinSeconds: number,
): Promise<void> {
  const response = await fetch(`${gateway}/gateway/register?wait=${withinSeconds}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ template_name: template, instance }),
    signal: AbortSignal.timeout(answerMs),
  });
  const body = Object(await response.json());
  if (response.status === 201 && body.healthy === true) return;
  throw new Error(`not registered: ${response.status} ${JSON.stringify(body).slice(0, 500)}`);
}

/** Takes an instance out. */
export async function deregister(gateway: string, template: string, id: string): Promise<void> {
  const response = await fetch(`${gateway}/gateway/deregister/${template}/${id}`, {
    method: 'DELETE',
    signal: AbortSignal.timeout(answerMs),
  });
  if (response.status !== 204)
    throw new Error(`not deregistered: ${response.status} ${await response.text()}`);
}
