import path from 'node:path'
import { formatBytes, formatExactDuration } from '../../public/format.ts'
import { packFolder, type Archive, type LeftOut } from './archive.ts'
import { namesIn } from './usage.ts'
import type { Context } from './commands.ts'

const TELL_EVERY_MS = 5000
const MAX_NAMED = 10

/**
 * Sends a folder to the fleet, unless it is there already. Returns the digest, with which the folder can be deployed.
 */
export async function pushFolder (folder: string,
  { api, cwd, tell, options }: Pick<Context, 'api' | 'cwd' | 'tell' | 'options'>): Promise<string>
{
  // Asked first, so that a missing permission is told before anything is packed.
  const { items } = await api.get<{ items: { digest: string }[] }>('/fleet/releases')
  tell(`packing ${folder}`)
  const archive = await packFolder(path.resolve(cwd, folder), { also: namesIn(options.pushAlso) ?? [] })
  const { digest, bytes, entries, unpackedBytes, leftOut } = archive
  try {
    if (leftOut.length > 0) tell(`not sent: ${leftOutText(leftOut)}`)
    tell(`packed ${entries} files and folders, ${formatBytes(unpackedBytes)}, to ${formatBytes(bytes)} as ${digest}`)
    if (items.some((item: { digest: string }) => item.digest === digest)) tell('already pushed: nothing is sent')
    else await sendArchive(archive, { api, tell })
    return digest
  } finally {
    await archive.close()
  }
}

function leftOutText (leftOut: LeftOut[]) {
  const named = leftOut.slice(0, MAX_NAMED).map(({ name, why }) => `${name} (${why})`)
  const rest = leftOut.length - named.length
  const all = [...named, ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ')
  const askable = leftOut.filter(({ canBeAskedFor }) => canBeAskedFor).slice(0, MAX_NAMED).map(({ name }) => name)
  return askable.length === 0
    ? all
    : `${all}; --push-also ${askable.join(',')} sends what is in .gitignore or has variables`
}

async function sendArchive ({ digest, bytes, read }: Archive, { api, tell }: Pick<Context, 'api' | 'tell'>) {
  const startedAt = performance.now()
  let sentBytes = 0
  const body = read((count) => {
    sentBytes += count
  })
  const telling = setInterval(() => tell(`sent ${formatBytes(sentBytes)} of ${formatBytes(bytes)}`), TELL_EVERY_MS)
  try {
    await api.upload(`/fleet/releases?digest=${digest}`, body, { type: 'application/gzip', bytes })
  } finally {
    clearInterval(telling)
  }
  tell(`sent ${formatBytes(bytes)} in ${formatExactDuration(Math.round(performance.now() - startedAt))}`)
}
