import { createNotifier } from './notify.ts'
import { startWatchdog } from './service-manager.ts'

/** An app that takes longer than this to get ready holds up none of those who wait for the host. */
const READY_WITHIN_MS = 20_000
/** What a stop takes beside the workers: open answers of the admin port, the histories. */
const LONGEST_STOP_MS = 90_000

/**
 * Tells the service manager that has started a host how the host is, as sd_notify(3) and sd_watchdog_enabled(3) have
 * it. It says nothing where nobody wants to know.
 */
export function tellHostService (
  { apps, keeper }: {
    apps: { all: () => { name: string, state: string, record: { wish: string } }[],
      onChange: (handler: () => void) => () => void },
    keeper: { isKept: boolean, onLost: (handler: () => void) => void }
  },
  { env = process.env, notify = createNotifier(env.NOTIFY_SOCKET) }: { env?: Record<string, string | undefined>,
    notify?: (message: string) => void } = {}
): { tellStopping: () => void, end: () => void } {
  if (!env.NOTIFY_SOCKET) return { tellStopping () {}, end () {} }
  let isReady = false
  let status = ''
  const watchdog = startWatchdog(env, { notify, isKept: keeper.isKept })
  const unsubscribe = apps.onChange(tellState)
  const timer = setTimeout(tellReady, READY_WITHIN_MS).unref()
  keeper.onLost(() => notify(`MAINPID=${process.pid}`))
  tellState()

  return { tellStopping () {
    unsubscribe()
    notify(`STOPPING=1\nEXTEND_TIMEOUT_USEC=${LONGEST_STOP_MS * 1000}`)
  }, end () {
    unsubscribe()
    clearInterval(watchdog)
    clearTimeout(timer)
  } }

  function tellReady () {
    if (isReady) return
    isReady = true
    notify('READY=1')
  }

  function tellState () {
    const wanted = apps.all().filter(({ record }) => record.wish === 'running')
    const text = statusText(wanted)
    if (text !== status) notify(`STATUS=${text}`)
    status = text
    if (wanted.every(({ state }) => !['stopped', 'waiting', 'starting'].includes(state))) tellReady()
  }
}

function statusText (apps: { name: string, state: string }[]) {
  const running = apps.filter(({ state }) => state === 'running').length
  const failed = apps.filter(({ state }) => state === 'failed').map(({ name }) => name)
  return `${running} of ${apps.length} apps run${failed.length === 0 ? '' : `; failed: ${failed.join(', ')}`}`
}
