import { FINGERPRINT } from '../config/fingerprint.ts'
import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { jsonText } from '../cli/output.ts'
import { checkedForm } from '../cli/usage.ts'
import type { Hosts } from '../api/ask.ts'
import type { Context } from '../cli/commands.ts'
import type { SettledFleetCrash } from './api-crashes.ts'

// What commands say and do that are about several hosts.

const SETTLED = Object.freeze({ resolve: 'resolved', mute: 'muted', reopen: 'open' })

/** Makes the command that settles one group on all members that answer. */
export function settleFleetCrash (action: keyof typeof SETTLED) {
  return async ({ api, options, print, tell }: Context, text: string | undefined) => {
    const fingerprint = checkedForm(`fleet ${action}`, FINGERPRINT,
      'the fingerprint of a group, as "clusterdeck crashes --all-hosts" prints it', text)
    const settled: SettledFleetCrash = await api.post(`/fleet/crashes/${fingerprint}/${action}`)
    const { hosts, members } = settled
    if (options.json) print(jsonText(settled))
    else tellHosts(hosts, { tell })
    const left = [...hosts.silent, ...hosts.refused.map(({ member }) => member)]
    if (left.length > 0)
      throw new DeckError('not-possible',
        `${SETTLED[action]} on ${members.length} members; unknown on ${left.join(', ')}`)
    if (!options.json) print(oneLine(`${SETTLED[action]} on ${members.map(({ member }) => member).join(', ')}`))
  }
}

export function tellHosts ({ asked, answered, silent, refused, cut }: Hosts,
  { tell, cutText = '' }: { tell: (text: string) => void, cutText?: string })
{
  if (answered < asked) tell(`${answered} of ${asked} answered`)
  if (silent.length > 0) tell(oneLine(`silent: ${silent.join(', ')}`))
  for (const { member, problem } of refused) tell(oneLine(`${member}: ${problem}`))
  for (const member of cut) tell(oneLine(`${member} ${cutText}`))
}
