// Opens one legacy MCP session over HTTP, as every client does first.

/** The body of `initialize`. It declares no capabilities, so that a shared process serves the session. */
export const initializeBody = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1.0.0' },
  },
});

/** Initializes, and resolves with the headers of all later requests. */
export async function openSession(
  url: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Record<string, string>> {
  const post = (text: string, more: Readonly<Record<string, string>>) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...headers,
        ...more,
      },
      body: text,
    });
  const opened = await post(body, {});
  const id = opened.headers.get('mcp-session-id');
  if (!opened.ok || id === null)
    throw new Error(`${url} opens no session: ${opened.status} ${await opened.text()}`);
  await opened.text();
  const session = { 'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-11-25' };
  const response = await post(
    JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }),
    session,
  );
  await response.text();
  return session;
}
