import { errorText } from '../errors.ts'
import type { Command } from '../lifecycle/state.ts'
import type { Cluster } from './cluster.ts'

type Order<Type> = Extract<Command, { type: Type }>

/** What has to be done before the first worker of a start or a deploy: its release is made, and its hook run. */
export function createPreparations (cluster: Cluster) {
  const { hooks, receive } = cluster

  return { async 'prepare-release' ({ rollout, source, note, actor }: Order<'prepare-release'>) {
    try {
      const release = await cluster.prepare(source, { note, actor })
      receive({ type: 'release-prepared', rollout, release, hasHook: hooks.has('beforeDeploy') })
    } catch (error) {
      receive({ type: 'release-not-prepared', rollout, reason: errorText(error) })
    }
  }, async 'run-hook' ({ rollout, from, release }: Order<'run-hook'>) {
    const { passed, reason, output } = await hooks.beforeDeploy({ rollout, from, release })
    receive({ type: 'hook-ended', rollout, passed, reason, output })
  }, 'end-hook': ({ rollout }: Order<'end-hook'>) => hooks.endOf(rollout),
    async 'run-start-hook' ({ release }: Order<'run-start-hook'>) {
      const { passed, reason } = await hooks.beforeStart(release)
      if (passed) receive({ type: 'start-hook-passed' })
      else cluster.emit('blocked', { message: String(reason) })
    } }
}
