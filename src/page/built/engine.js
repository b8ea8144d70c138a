import{D as e,L as t,M as n,N as r,P as i,S as a,X as o,at as s,f as c,h as l,lt as u,u as d,v as f,w as p,x as m}from"./page.js";function h(e){if(e.poisoned)return`The journal has failed: ${e.poisoned}. Nothing more is committed.`;if(e.draining)return`It drains: no new stage starts.`;if(e.paused.includes(`everything`))return`An operator has paused everything: no further stage starts.`;let n=Number(e.decided)-Number(e.durable);return n>0?`It runs; ${t(n,`commit`)} wait for the disk.`:`It runs, and all that was decided is on disk.`}function g(){let g=c(`engine`,{},{on:[`gauges`],pause:1e3,filter:`root:0`}),v=o(),[x,S]=u(null),C=g.data,w=C?.paused.includes(`everything`)??!1,T=Object.keys(f).filter(e=>e!==`limit`&&v(f[e].right));return s`
    <div class="screen engine">
      <${a} title="Engine" note=${C&&h(C)}>
        ${C&&T.filter(e=>e===`drain`?!C.draining:e===`resume`===w).map(e=>s`<button type="button" key=${e} class=${f[e]?.isGrave?`grave`:``} onClick=${()=>S(e)}>${f[e]?.name}${e===`drain`?``:` all`}…</button>`)}
      <//>
      <${e} loaded=${g}>${C&&s`
        <${d} body=${C} />
        <div class="panels">
          <${b} title="Commits" facts=${[[`decided`,C.decided],[`durable`,C.durable],[`commits`,r(C.commits)],[`batches`,`${r(C.batches)} (${(C.commits/Math.max(1,C.batches)).toFixed(1)} commits each)`],C.last_batch&&[`last batch`,`${t(C.last_batch.commits,`commit`)}, ${i(C.last_batch.took_ms)}`],[`epoch`,C.epoch]]} />
          <${b} title="Journal" facts=${[[`on disk`,n(C.size_bytes)],[`appended`,n(C.appended_bytes)],[`free on its disk`,n(C.disk_free_bytes)],...[`commit_p99`,`sync_p50`,`sync_p99`].map(e=>[e.replace(`_`,` `),_(C[`${e}_ms`])]),[`state`,C.poisoned?s`<span class="bad">failed</span>`:`sound`]]} />
          <${b} title="Work" facts=${[[`live families`,r(C.live_families)],[`stages out`,r(C.going)],[`actors`,r(C.actors)],[`results that came late`,r(C.late)],C.panics!==void 0&&[`panics`,C.panics?s`<span class="bad">${C.panics}</span>`:`0`],[`lost wake-ups`,C.lost_wakes?s`<span class="bad">${C.lost_wakes}</span>`:`0`],[`paused`,C.paused.length?C.paused.join(`, `):`nothing`],[`streams open`,r(C.streams)]]} />
          <${b} title="Waiting in mailboxes" facts=${[[`supervisor`,r(C.mailboxes.supervisor)],[`limiter`,r(C.mailboxes.limiter)],[`journal`,t(C.mailboxes.journal,`batch`,`batches`)],[`reader`,t(C.mailboxes.reader,`read`)],[`workers`,t(C.mailboxes.workers,`call`)]]} />
          <${b} title="Last start" facts=${[[`families found`,r(C.recovered.families)],[`procedures`,r(C.recovered.procedures)],[`quarantined`,C.recovered.quarantined?s`<span class="bad">${C.recovered.quarantined}</span>`:`0`],[`took`,i(C.recovered.took_ms)],[`of that to read`,i(C.recovered.read_ms)]]} />
        </div>
        <h2>Workers</h2>
        <div class="scrolls"><table class="plain-table">
          <thead><tr><th>Worker</th><th>State</th><th>Procedure</th><th title="for this long at least">Busy for</th><th>Queue</th><th>Actors</th><th>Next</th></tr></thead>
          <tbody>${C.workers.map(y)}</tbody>
        </table></div>
        <h2>Quarantined families</h2>
        ${C.quarantined.length===0?s`<${m}>No family is set aside.<//>`:s`<p class="ids">${C.quarantined.map(e=>s`<${p} key=${e} id=${e} />`)}</p>`}
      `}<//>
      ${x&&s`<${l} key=${x} verb=${f[x]} path=${`engine/${x}`} target=${{id:`the engine`,kind:`the engine`}} onClose=${()=>{S(null),g.reload()}} />`}
    </div>`}const _=e=>typeof e==`number`?i(e):`–`,v=({call:e,stage:t})=>e===`stage`?`stage ${t}`:`${e}${t?` of stage ${t}`:``}`;function y(e){let{blocked:n}=e,a=n??e.busy;return s`
    <tr key=${e.worker}>
      <th scope="row">${e.worker}${e.extra&&s` <span class="tag">extra</span>`}</th>
      <td>${a?s`${n?s`<span class="bad">blocked</span>`:`busy`} in ${v(a)}`:`answers`}</td>
      <td>${a?s`<${p} id=${a.id} />`:`–`}</td>
      <td>${a?i(a.time_ms):`–`}</td>
      <td>${e.waiting?t(e.waiting,`call`):`nothing`}</td>
      <td>${r(e.actors)}</td>
      <td class="next">${n?`another worker is added when half of them are blocked`:`takes the next stage that is ready`}</td>
    </tr>`}const b=({title:e,facts:t})=>s`
  <section class="panel"><h2>${e}</h2><dl>${t.filter(e=>Array.isArray(e)).map(([e,t])=>s`<div key=${e}><dt>${e}</dt><dd>${t}</dd></div>`)}</dl></section>`;export{g as EngineScreen};