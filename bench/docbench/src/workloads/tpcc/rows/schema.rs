//! The specification's tables.

use crate::sql::SqlSession;
use crate::target::Failure;

/// Name and columns; the primary key is the last entry.
const TABLES: [(&str, &str); 9] = [
    (
        "warehouse",
        "w_id bigint, w_name varchar(10), w_tax bigint, w_ytd bigint, primary key (w_id)",
    ),
    (
        "district",
        "d_w bigint, d_id bigint, d_name varchar(10), d_tax bigint, d_ytd bigint, d_next bigint, \
         primary key (d_w, d_id)",
    ),
    (
        "customer",
        "c_w bigint, c_d bigint, c_id bigint, c_last varchar(16), c_first varchar(16), \
         c_credit varchar(2), c_discount bigint, c_balance bigint, c_ytd bigint, \
         c_payments bigint, c_deliveries bigint, c_data varchar(500), primary key (c_w, c_d, c_id)",
    ),
    (
        "history",
        "h_id bigint, h_c_w bigint, h_c_d bigint, h_c bigint, h_w bigint, h_d bigint, \
         h_amount bigint, primary key (h_id)",
    ),
    (
        "item",
        "i_id bigint, i_name varchar(24), i_price bigint, i_data varchar(50), primary key (i_id)",
    ),
    (
        "stock",
        "s_w bigint, s_i bigint, s_quantity bigint, s_ytd bigint, s_orders bigint, \
         s_remote bigint, s_dist varchar(24), s_data varchar(50), primary key (s_w, s_i)",
    ),
    (
        "orders",
        "o_w bigint, o_d bigint, o_id bigint, o_c bigint, o_entry bigint, o_carrier bigint, \
         o_lines bigint, primary key (o_w, o_d, o_id)",
    ),
    ("new_orders", "n_w bigint, n_d bigint, n_o bigint, primary key (n_w, n_d, n_o)"),
    (
        "order_line",
        "l_w bigint, l_d bigint, l_o bigint, l_number bigint, l_i bigint, l_supplier bigint, \
         l_quantity bigint, l_amount bigint, l_delivered bigint, l_dist varchar(24), \
         primary key (l_w, l_d, l_o, l_number)",
    ),
];

const INDEXES: [&str; 2] = [
    "create index customer_by_name on customer (c_w, c_d, c_last, c_first)",
    "create index orders_by_customer on orders (o_w, o_d, o_c, o_id)",
];

/// Makes all tables, empty.
pub fn create(sql: &mut dyn SqlSession) -> Result<(), Failure> {
    let options = sql.table_options().to_owned();
    for (name, columns) in TABLES {
        sql.run(&format!("drop table if exists {name}"))?;
        sql.run(&format!("create table {name} ({columns}){options}"))?;
    }
    for index in INDEXES {
        sql.run(index)?;
    }
    Ok(())
}
