import { createElement } from 'react'

export default function Page ({ pid }) {
  return createElement('p', null, `hello from next, pid ${pid}`)
}

export function getServerSideProps () {
  return { props: { pid: process.pid } }
}
