import{I as e,L as t,N as n,R as r,S as i,U as a,V as o,_ as s,g as c,l,p as u,rt as d,st as f,u as p,y as m}from"./page.js";function h(e){if(e.poisoned)return`The journal has failed: ${e.poisoned}. Nothing more is committed.`;if(e.draining)return`It drains: no new stage starts.`;if(e.paused.includes(`everything`))return`An operator has paused everything: no further stage starts.`;let t=Number(e.decided)-Number(e.durable);return t>0?`It runs; ${o(t,`commit`)} wait for the disk.`:`It runs, and all that was decided is on disk.`}function g(){let g=a(`engine`,{},{on:[`gauges`],pause:1e3,filter:`root:0`}),v=n(),[x,S]=f(null),C=g.data,w=C?.paused.includes(`everything`)??!1,T=Object.keys(u).filter(e=>e!==`limit`&&v(u[e].right));return d`
    <div class="screen engine">
      <${s} title="Engine" note=${C&&h(C)}>
        ${C&&T.filter(e=>e===`drain`?!C.draining:e===`resume`===w).map(e=>d`<button type="button" key=${e} class=${u[e]?.isGrave?`grave`:``} onClick=${()=>S(e)}>${u[e]?.name}${e===`drain`?``:` all`}…</button>`)}
      <//>
      <${i} loaded=${g}>${C&&d`
        <${l} body=${C} />
        <div class="panels">
          <${b} title="Commits" facts=${[[`decided`,C.decided],[`durable`,C.durable],[`commits`,t(C.commits)],[`batches`,`${t(C.batches)} (${(C.commits/Math.max(1,C.batches)).toFixed(1)} commits each)`],C.last_batch&&[`last batch`,`${o(C.last_batch.commits,`commit`)}, ${r(C.last_batch.took_ms)}`],[`epoch`,C.epoch]]} />
          <${b} title="Journal" facts=${[[`on disk`,e(C.size_bytes)],[`appended`,e(C.appended_bytes)],[`free on its disk`,e(C.disk_free_bytes)],...[`commit_p99`,`sync_p50`,`sync_p99`].map(e=>[e.replace(`_`,` `),_(C[`${e}_ms`])]),[`state`,C.poisoned?d`<span class="bad">failed</span>`:`sound`]]} />
          <${b} title="Work" facts=${[[`live families`,t(C.live_families)],[`stages out`,t(C.going)],[`actors`,t(C.actors)],[`results that came late`,t(C.late)],C.panics!==void 0&&[`panics`,C.panics?d`<span class="bad">${C.panics}</span>`:`0`],[`lost wake-ups`,C.lost_wakes?d`<span class="bad">${C.lost_wakes}</span>`:`0`],[`paused`,C.paused.length?C.paused.join(`, `):`nothing`],[`streams open`,t(C.streams)]]} />
          <${b} title="Waiting in mailboxes" facts=${[[`supervisor`,t(C.mailboxes.supervisor)],[`limiter`,t(C.mailboxes.limiter)],[`journal`,o(C.mailboxes.journal,`batch`,`batches`)],[`reader`,o(C.mailboxes.reader,`read`)],[`workers`,o(C.mailboxes.workers,`call`)]]} />
          <${b} title="Last start" facts=${[[`families found`,t(C.recovered.families)],[`procedures`,t(C.recovered.procedures)],[`quarantined`,C.recovered.quarantined?d`<span class="bad">${C.recovered.quarantined}</span>`:`0`],[`took`,r(C.recovered.took_ms)],[`of that to read`,r(C.recovered.read_ms)]]} />
        </div>
        <h2>Workers</h2>
        <div class="scrolls"><table class="plain-table">
          <thead><tr><th>Worker</th><th>State</th><th>Procedure</th><th title="for this long at least">Busy for</th><th>Queue</th><th>Actors</th><th>Next</th></tr></thead>
          <tbody>${C.workers.map(y)}</tbody>
        </table></div>
        <h2>Quarantined families</h2>
        ${C.quarantined.length===0?d`<${c}>No family is set aside.<//>`:d`<p class="ids">${C.quarantined.map(e=>d`<${m} key=${e} id=${e} />`)}</p>`}
      `}<//>
      ${x&&d`<${p} key=${x} verb=${u[x]} path=${`engine/${x}`} target=${{id:`the engine`,kind:`the engine`}} onClose=${()=>{S(null),g.reload()}} />`}
    </div>`}const _=e=>typeof e==`number`?r(e):`–`,v=({call:e,stage:t})=>e===`stage`?`stage ${t}`:`${e}${t?` of stage ${t}`:``}`;function y(e){let{blocked:n}=e,i=n??e.busy;return d`
    <tr key=${e.worker}>
      <th scope="row">${e.worker}${e.extra&&d` <span class="tag">extra</span>`}</th>
      <td>${i?d`${n?d`<span class="bad">blocked</span>`:`busy`} in ${v(i)}`:`answers`}</td>
      <td>${i?d`<${m} id=${i.id} />`:`–`}</td>
      <td>${i?r(i.time_ms):`–`}</td>
      <td>${e.waiting?o(e.waiting,`call`):`nothing`}</td>
      <td>${t(e.actors)}</td>
      <td class="next">${n?`another worker is added when half of them are blocked`:`takes the next stage that is ready`}</td>
    </tr>`}const b=({title:e,facts:t})=>d`
  <section class="panel"><h2>${e}</h2><dl>${t.filter(e=>Array.isArray(e)).map(([e,t])=>d`<div key=${e}><dt>${e}</dt><dd>${t}</dd></div>`)}</dl></section>`;export{g as EngineScreen};