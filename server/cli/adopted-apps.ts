import { readDeckStatus } from './deck-status.ts'
import { decksTable } from './decks-table.ts'
import type { ApiClient } from './api-client.ts'
import type { Terminal } from './program.ts'
import type { Tools } from './commands.ts'
import type { AppView } from '../api/apps.ts'

/** Prints what the host runs by now. `names`: of apps that have moved into it; `url`: of the host. */
export async function showApps (names: readonly string[],
  { host, url, terminal, answer }: { host: ApiClient, url: string, terminal: Terminal, answer: Tools['answer'] })
{
  const views = await Promise.all(names.map((name) => host.get<AppView>(`/apps/${name}`)))
  const rows = await Promise.all(
    views.map(async ({ name, dataDir, path, state }) => ({ name, dataDir, adminUrl: `${url}${path}`,
      answer: await readDeckStatus(String(dataDir), terminal), state })
    )
  )
  answer(views, () => decksTable(rows, { now: Date.now() }))
}
