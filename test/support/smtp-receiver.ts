import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import type { TestOwner } from './deck.ts'

/**
 * A mail server of this machine that takes every mail, or answers as it is told.
 * @param how `afterRecipient`: its answer to each RCPT
 */
export async function startSmtpReceiver (t: TestOwner,
  { afterRecipient = '250 ok' }: { afterRecipient?: string } = {})
{
  /** what was sent to it as mails, with headers */
  const mails: string[] = []
  const recipients: string[] = []
  const server = createServer((socket) => {
    let rest = ''
    let isMail = false
    const answer = (line: string) => socket.write(`${line}\r\n`)
    socket.setEncoding('utf8').on('error', () => {}).on('data', (text) => {
      rest += text
      while (true) {
        const end = isMail ? '\r\n.\r\n' : '\r\n'
        const at = rest.indexOf(end)
        if (at === -1) return
        const part = rest.slice(0, at)
        rest = rest.slice(at + end.length)
        if (isMail) mails.push(part)
        else if (/^RCPT/i.test(part)) recipients.push(part)
        answer(
          isMail ? '250 taken' : /^DATA/i.test(part) ? '354 go on' : /^RCPT/i.test(part) ? afterRecipient : '250 ok'
        )
        isMail = !isMail && /^DATA/i.test(part)
      }
    })
    answer('220 test')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { mails, recipients, port: (server.address() as AddressInfo).port }
}
